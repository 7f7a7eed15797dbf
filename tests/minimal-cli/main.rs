//! A minimal command-line program. `make bench` compares the start of `teamctl` with it.

use clap::Parser;

#[derive(Parser)]
struct Hello {
    name: String,
    #[arg(long)]
    twice: bool,
}

#[allow(clippy::print_stdout, reason = "the program only prints")]
fn main() {
    let hello = Hello::parse();
    for _ in 0..=u8::from(hello.twice) {
        println!("hello, {}", hello.name);
    }
}
