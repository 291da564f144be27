//! Resolves frames whose functions another program has already looked up.

use crate::modules::{Frame, Module};
use crate::symbols::{Function, Symbols};

/// The modules and functions of a stream's frames, which another program has already looked up.
/// Each return address in the stream is 1 + an index in `frames`. The addresses of blocks are
/// invented and only distinguish blocks.
pub(crate) struct Known {
    pub modules: Vec<Module>,
    pub frames: Vec<KnownFrame>,
}

/// A frame whose functions another program has looked up.
#[derive(Clone)]
pub(crate) struct KnownFrame {
    /// Index in [`Known::modules`].
    pub module: Option<u32>,
    /// The functions of the frame, the outermost first. At least one.
    pub functions: Vec<Function>,
}

impl Known {
    /// Replaces each frame of the stream by the entry of `self.frames` that the frame's address
    /// refers to, if there is such an entry.
    pub(super) fn resolve(self, frames: Vec<Frame>) -> (Vec<Module>, Vec<Frame>, Symbols) {
        let mut functions = Vec::new();
        let mut resolved = Vec::new();
        for frame in frames {
            let known = match frame {
                Frame::Unknown { address, .. } => {
                    self.frames.get((address as usize).wrapping_sub(1))
                }
                _ => None,
            };
            let named = |name: String| vec![Function { name, ..Function::default() }];
            functions.push(match (known, &frame) {
                (Some(known), _) => known.functions.clone(),
                (None, Frame::Named(name)) => named(name.clone()),
                (None, _) => named("?".to_string()),
            });
            resolved.push(match known {
                Some(known) => Frame::Known { module: known.module },
                None => frame,
            });
        }
        let symbols = Symbols::imported(self.modules.len(), functions);
        (self.modules, resolved, symbols)
    }
}
