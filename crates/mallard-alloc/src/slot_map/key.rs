//! Generational keys, which are integers that identify one element of a slot map and are never
//! reused.

use core::fmt::Debug;
use core::hash::Hash;

/// Identifies one element of a [`SlotMap`](crate::SlotMap) for ever. A key contains the index of
/// the element's slot, and a generation, which counts the elements of that slot.
///
/// [`key_type!`](crate::key_type) makes key types. [`Key32`] and [`Key64`] are predefined.
///
/// ```
/// use mallard::{Key, SlotMap};
/// mallard::key_type! { pub struct EnemyKey(20, 12); } // 4 bytes
/// let mut enemies: SlotMap<EnemyKey, &str> = SlotMap::new();
/// let duck = enemies.insert("duck");
/// let sent: u32 = duck.to_bits();
/// assert_eq!(enemies[EnemyKey::from_bits(sent).unwrap()], "duck");
/// assert_eq!(size_of::<Option<EnemyKey>>(), 4);
/// ```
///
/// A key is never 0, so an `Option` of a key is no larger than the key. The default key is the null
/// key, which identifies no element. Any other integer can be converted to a key. If no map has
/// returned that integer, the key finds no element.
///
/// The index is in the low bits, and the generation is in the bits above. Keys are compared as
/// integers, so the generation is compared first.
///
/// # Safety
/// `to_bits` returns the integer that `from_bits` was called with, which is never 0. Keys have the
/// equality and order of these integers. Every type made by `key_type!` meets these conditions.
pub unsafe trait Key:
    Copy + Eq + Ord + Hash + Debug + Default + Send + Sync + 'static
{
    /// The integer type: `u32` or `u64`.
    type Bits: Bits;

    /// Number of bits of the index. A map has at most 2^`INDEX_BITS` - 1 slots.
    const INDEX_BITS: u32;
    /// Number of bits of the generation. A slot has at most 2^`GENERATION_BITS` - 1 elements, one
    /// after another.
    const GENERATION_BITS: u32;
    /// Whether a slot starts again at the first generation when its generations are used up. Then a
    /// very old key may identify a new element. Otherwise the slot retires.
    const WRAPPING: bool;

    /// Returns the key as an integer, which is never 0.
    fn to_bits(self) -> Self::Bits;

    /// Returns the key with these bits, or `None` for 0.
    fn from_bits(bits: Self::Bits) -> Option<Self>;

    /// Returns the null key, which identifies no element in any map.
    #[inline]
    fn null() -> Self {
        // The null key has index 1 and generation 0. No element has generation 0.
        match Self::from_bits(Self::Bits::from_u64(1)) {
            Some(key) => key,
            None => unreachable!("1 is not 0"),
        }
    }

    /// Returns whether this key is the null key. Another key may also identify no element.
    #[inline]
    fn is_null(self) -> bool {
        self.to_bits().to_u64() == 1
    }

    /// Returns the index of the key's slot. The first slot has index 1.
    #[inline]
    fn index(self) -> usize {
        Words::<Self>::index(self.to_bits())
    }

    /// Returns the generation, which is a number that counts the elements of the slot, from 1.
    #[inline]
    fn generation(self) -> u64 {
        self.to_bits().to_u64() >> Self::INDEX_BITS
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// The integer types that a key can have: `u32` and `u64`. This trait is sealed.
pub trait Bits: Copy + Eq + Ord + Debug + Send + Sync + 'static + sealed::Sealed {
    /// The integer type without 0.
    #[doc(hidden)]
    type NonZero: Copy;
    #[doc(hidden)]
    fn from_u64(value: u64) -> Self;
    /// Returns the integer as a `u64`.
    fn to_u64(self) -> u64;
}

impl Bits for u32 {
    type NonZero = core::num::NonZeroU32;
    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        value as u32
    }
    #[inline(always)]
    fn to_u64(self) -> u64 {
        u64::from(self)
    }
}

impl Bits for u64 {
    type NonZero = core::num::NonZeroU64;
    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        value
    }
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self
    }
}

/// The words of keyed slots. Each slot has a word in addition to its value:
///
/// ```text
/// state       word
/// live        { generation, own index }   the slot's key
/// free key    { 0, 0 }                    the slot's next key is in `FreeKeys`
/// idle        { generation, 0 }           the slot's next key; the idle bit is set
/// detached    { generation, 0 }           the slot's key; the idle bit is not set
/// retired     { 0, 0 }                    for ever
/// fresh       { 0, 0 }                    never used
/// slot 0      { 0, 0 }                    never has a value
/// ```
///
/// A key identifies a live element if and only if the key equals the word of the slot that it
/// addresses, because only the word of a live slot contains the slot's own index, and no key is 0.
///
/// The index of a key is masked to a power of two before use, so that every integer addresses some
/// slot. If the masked index is another slot's index, the comparison fails, because the index in a
/// word is the slot's own index, or 0.
pub(crate) struct Words<K>(core::marker::PhantomData<K>);

impl<K: Key> Words<K> {
    pub(crate) const INDEX_MASK: u64 = (1 << K::INDEX_BITS) - 1;
    const ONE_GENERATION: u64 = 1 << K::INDEX_BITS;
    pub(crate) const VALUE_MAX: u64 = u64::MAX >> (64 - K::INDEX_BITS - K::GENERATION_BITS);
    #[allow(dead_code)] // unused on some targets
    pub(crate) const GENERATION_MAX: u64 = Self::VALUE_MAX >> K::INDEX_BITS;
    /// The number of slots that a key can address on this machine, including slot 0.
    pub(crate) const SLOTS_MAX: usize = if Self::INDEX_MASK < (usize::MAX as u64) >> 1 {
        Self::INDEX_MASK as usize + 1
    } else {
        (usize::MAX >> 1) + 1
    };

    #[inline(always)]
    pub(crate) fn index(word: K::Bits) -> usize {
        (word.to_u64() & Self::INDEX_MASK) as usize
    }
    #[inline(always)]
    pub(crate) fn key(index: usize, generation: u64) -> K::Bits {
        K::Bits::from_u64(generation << K::INDEX_BITS | index as u64)
    }
    /// Returns the word of an idle or detached slot, which is its key without the index.
    #[inline(always)]
    pub(crate) fn without_index(key: K::Bits) -> K::Bits {
        K::Bits::from_u64(key.to_u64() & !Self::INDEX_MASK)
    }
    /// Returns the next key of the same slot. The next key is smaller than `key` if the generations
    /// are used up.
    #[inline(always)]
    pub(crate) fn after(key: K::Bits) -> K::Bits {
        K::Bits::from_u64(key.to_u64().wrapping_add(Self::ONE_GENERATION) & Self::VALUE_MAX)
    }
    /// Returns the key that is stored in a word or in `FreeKeys`. Requires that the key is not 0.
    #[inline(always)]
    pub(crate) fn known(word: K::Bits) -> K {
        debug_assert!(word.to_u64() != 0);
        // SAFETY: the words of live slots and free keys have a generation above 0.
        unsafe { K::from_bits(word).unwrap_unchecked() }
    }
}

/// Selects the integer type of a key by its width.
#[doc(hidden)]
#[derive(Debug)]
pub struct Width<const ABOVE_32: bool>;
#[doc(hidden)]
pub trait Select {
    type Bits: Bits;
}
impl Select for Width<false> {
    type Bits = u32;
}
impl Select for Width<true> {
    type Bits = u64;
}

/// Defines key types from the widths of index and generation in bits. A key has at most 64 bits. A
/// key needs 4 bytes if it has at most 32 bits, and 8 bytes otherwise.
///
/// ```
/// mallard::key_type! {
///     /// The key of an enemy.
///     pub struct EnemyKey(20, 12);
///     /// Wraps: 255 elements later, an old key may name a new bullet.
///     pub struct BulletKey(24, 8, wrapping);
/// }
/// # assert_eq!((size_of::<EnemyKey>(), size_of::<BulletKey>()), (4, 4));
/// ```
///
/// With the feature `serde`, keys are serialised as integers.
///
/// A map does not accept keys of another type:
/// ```compile_fail
/// mallard::key_type! { struct A(20, 12); struct B(20, 12); }
/// let mut a: mallard::SlotMap<A, u8> = mallard::SlotMap::new();
/// let b: mallard::SlotMap<B, u8> = mallard::SlotMap::new();
/// let key = a.insert(1);
/// b.get(key);
/// ```
#[macro_export]
macro_rules! key_type {
    () => {};
    ($(#[$meta:meta])* $vis:vis struct $name:ident($index:expr, $generation:expr); $($rest:tt)*) => {
        $crate::__key_type! { [$(#[$meta])*] [$vis] $name, $index, $generation, false }
        $crate::key_type! { $($rest)* }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident($index:expr, $generation:expr, wrapping); $($rest:tt)*) => {
        $crate::__key_type! { [$(#[$meta])*] [$vis] $name, $index, $generation, true }
        $crate::key_type! { $($rest)* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __key_type {
    ([$(#[$meta:meta])*] [$vis:vis] $name:ident, $index:expr, $generation:expr, $wrapping:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $vis struct $name(
            <<$crate::__key::Width<{ ($index) + ($generation) > 32 }> as $crate::__key::Select>::Bits
                as $crate::__key::Bits>::NonZero,
        );

        const _: () = {
            assert!($index >= 2 && $index <= 40, "a key needs 2 to 40 bits for the index");
            assert!($generation >= 1 && ($index) + ($generation) <= 64,
                "a key has at most 64 bits, and at least one of them for the generation");
            type Bits = <$crate::__key::Width<{ ($index) + ($generation) > 32 }>
                as $crate::__key::Select>::Bits;

            // SAFETY: the key is one integer, and all other functions are derived from the integer.
            unsafe impl $crate::Key for $name {
                type Bits = Bits;
                const INDEX_BITS: u32 = $index;
                const GENERATION_BITS: u32 = $generation;
                const WRAPPING: bool = $wrapping;
                #[inline(always)]
                fn to_bits(self) -> Bits {
                    self.0.get()
                }
                #[inline(always)]
                fn from_bits(bits: Bits) -> ::core::option::Option<Self> {
                    ::core::num::NonZero::new(bits).map(Self)
                }
            }
            impl ::core::default::Default for $name {
                /// Returns the null key.
                fn default() -> Self {
                    <Self as $crate::Key>::null()
                }
            }
            /// Writes index and generation: `EnemyKey(12v3)`.
            impl ::core::fmt::Debug for $name {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    let (index, generation) =
                        ($crate::Key::index(*self), $crate::Key::generation(*self));
                    ::core::write!(f, "{}({index}v{generation})", ::core::stringify!($name))
                }
            }
        };
        $crate::__key_serde! { $name }
    };
}

#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __key_serde {
    ($name:ident) => {};
}

#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! __key_serde {
    ($name:ident) => {
        const _: () = {
            use $crate::__key::serde;
            impl serde::Serialize for $name {
                fn serialize<S: serde::Serializer>(
                    &self,
                    to: S,
                ) -> ::core::result::Result<S::Ok, S::Error> {
                    serde::Serialize::serialize(&$crate::Key::to_bits(*self), to)
                }
            }
            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(
                    from: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    let bits = serde::Deserialize::deserialize(from)?;
                    <Self as $crate::Key>::from_bits(bits)
                        .ok_or_else(|| serde::de::Error::custom("0 is no key"))
                }
            }
        };
    };
}

crate::key_type! {
    /// The usual key, of 4 bytes. A map has up to a million slots, and each slot can have 4,095
    /// elements, one after the other.
    pub struct Key32(20, 12);
    /// The key for large or long-lived maps, of 8 bytes. A map has up to four billion slots, and
    /// each slot can have four billion elements, one after the other.
    pub struct Key64(32, 32);
}
