//! `mallard completions`, and the man pages of an installation.

use clap::CommandFactory;
use mallard_measure::error::Failure;
use mallard_measure::output::terminal;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints what a shell needs to complete the commands and options of mallard.
///
/// For bash: source <(mallard completions bash)
#[derive(clap::Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl Completions {
    /// Prints the script.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Mallard::command(), "mallard", &mut script);
        terminal::write(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the man pages and shell completions of an installation.
///
/// DIRECTORY gets man/man1, bash-completion/completions, zsh/site-functions and
/// fish/vendor_completions.d, as in PREFIX/share.
#[derive(clap::Args)]
pub struct Pages {
    /// The directory that corresponds to PREFIX/share.
    folder: PathBuf,
}

impl Pages {
    /// Writes the files.
    pub fn run(self) -> Result<ExitCode, Failure> {
        write(&self.folder).map_err(|e| {
            let shown = self.folder.display();
            Failure::new(
                format!("cannot write to {shown}: {}", e.to_string().to_lowercase()),
                "some pages may be missing",
                format!("ls -ld {shown}"),
            )
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write(folder: &Path) -> io::Result<()> {
    let man = folder.join("man/man1");
    fs::create_dir_all(&man)?;
    clap_mangen::generate_to(crate::Mallard::command(), man)?;
    use clap_complete::Shell::{Bash, Fish, Zsh};
    for (shell, place) in [
        (Bash, "bash-completion/completions/mallard"),
        (Zsh, "zsh/site-functions/_mallard"),
        (Fish, "fish/vendor_completions.d/mallard.fish"),
    ] {
        let path = folder.join(place);
        fs::create_dir_all(path.parent().expect("a file in a directory"))?;
        let mut file = fs::File::create(path)?;
        clap_complete::generate(shell, &mut crate::Mallard::command(), "mallard", &mut file);
    }
    Ok(())
}
