//! The least that a program of a command line can be: what starting one costs, for `make bench`.

use clap::Parser;

#[derive(Parser)]
struct Hello {
    name: String,
    #[arg(long)]
    twice: bool,
}

#[allow(clippy::print_stdout, reason = "it is what it does")]
fn main() {
    let hello = Hello::parse();
    for _ in 0..=u8::from(hello.twice) {
        println!("hello, {}", hello.name);
    }
}
