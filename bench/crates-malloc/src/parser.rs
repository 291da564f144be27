//! Interprets a small language. Source text becomes tokens, tokens become a tree of boxes, and
//! names become numbers. Constant parts of the trees are computed, and the trees are dropped. One
//! thread allocates many small blocks.

use crate::text::{mix, word, Random};
use std::collections::HashMap;

#[derive(Clone)]
enum Token {
    Name(String),
    Number(i64),
    Sign(char),
}

enum Tree {
    Number(i64),
    Name(usize),
    Call(usize, Vec<Tree>),
    Two(char, Box<Tree>, Box<Tree>),
}

#[derive(Default)]
struct Names {
    numbers: HashMap<String, usize>,
    all: Vec<String>,
}

impl Names {
    fn number(&mut self, name: String) -> usize {
        if let Some(&n) = self.numbers.get(&name) {
            return n;
        }
        self.all.push(name.clone());
        self.numbers.insert(name, self.all.len() - 1);
        self.all.len() - 1
    }
}

pub fn run(times: usize) -> u64 {
    let sources: Vec<String> = (0..200).map(source).collect();
    let mut sum = 0;
    for _ in 0..times {
        let mut names = Names::default();
        let mut trees = Vec::new();
        for text in &sources {
            let tokens = tokens(text);
            let mut at = 0;
            while at < tokens.len() {
                trees.push(two(&tokens, &mut at, &mut names, 0));
                at += 1; // the semicolon
            }
        }
        let folded: Vec<Tree> = trees.into_iter().map(fold).collect();
        sum = folded.iter().fold(mix(sum, names.all.len()), |s, t| mix(s, weight(t)));
    }
    sum
}

fn source(seed: u64) -> String {
    let mut random = Random(seed * 131 + 9);
    let mut text = String::new();
    for _ in 0..150 {
        expression(&mut random, &mut text, 5);
        text.push_str(";\n");
    }
    text
}

fn expression(random: &mut Random, text: &mut String, depth: usize) {
    match if depth == 0 { random.below(2) } else { random.below(6) } {
        0 => text.push_str(&random.below(10_000).to_string()),
        1 => text.push_str(&word(random)),
        2 => {
            text.push_str(&word(random));
            text.push('(');
            for i in 0..random.below(4) {
                if i != 0 {
                    text.push_str(", ");
                }
                expression(random, text, depth - 1);
            }
            text.push(')');
        }
        _ => {
            text.push('(');
            expression(random, text, depth - 1);
            text.push_str([" + ", " * ", " - "][random.below(3)]);
            expression(random, text, depth - 1);
            text.push(')');
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(&c) = rest.peek() {
        if c.is_ascii_alphabetic() {
            let mut name = String::new();
            while let Some(c) = rest.next_if(char::is_ascii_alphanumeric) {
                name.push(c);
            }
            found.push(Token::Name(name));
        } else if c.is_ascii_digit() {
            let mut number = 0;
            while let Some(c) = rest.next_if(char::is_ascii_digit) {
                number = number * 10 + i64::from(c as u32 - '0' as u32);
            }
            found.push(Token::Number(number));
        } else {
            rest.next();
            if !c.is_whitespace() {
                found.push(Token::Sign(c));
            }
        }
    }
    found
}

fn sign(tokens: &[Token], at: usize) -> char {
    match tokens.get(at) {
        Some(Token::Sign(c)) => *c,
        _ => ' ',
    }
}

fn two(tokens: &[Token], at: &mut usize, names: &mut Names, strength: u8) -> Tree {
    let mut left = one(tokens, at, names);
    loop {
        let op = sign(tokens, *at);
        let binds = match op {
            '+' | '-' => 1,
            '*' => 2,
            _ => return left,
        };
        if binds <= strength {
            return left;
        }
        *at += 1;
        left = Tree::Two(op, Box::new(left), Box::new(two(tokens, at, names, binds)));
    }
}

fn one(tokens: &[Token], at: &mut usize, names: &mut Names) -> Tree {
    *at += 1;
    match tokens[*at - 1].clone() {
        Token::Number(n) => Tree::Number(n),
        Token::Name(name) if sign(tokens, *at) == '(' => {
            *at += 1;
            let mut arguments = Vec::new();
            while sign(tokens, *at) != ')' {
                arguments.push(two(tokens, at, names, 0));
                *at += usize::from(sign(tokens, *at) == ',');
            }
            *at += 1;
            Tree::Call(names.number(name), arguments)
        }
        Token::Name(name) => Tree::Name(names.number(name)),
        Token::Sign(_) => {
            let inside = two(tokens, at, names, 0);
            *at += 1;
            inside
        }
    }
}

fn fold(tree: Tree) -> Tree {
    match tree {
        Tree::Two(op, a, b) => match (op, fold(*a), fold(*b)) {
            ('+', Tree::Number(a), Tree::Number(b)) => Tree::Number(a.wrapping_add(b)),
            ('-', Tree::Number(a), Tree::Number(b)) => Tree::Number(a.wrapping_sub(b)),
            ('*', Tree::Number(a), Tree::Number(b)) => Tree::Number(a.wrapping_mul(b)),
            (op, a, b) => Tree::Two(op, Box::new(a), Box::new(b)),
        },
        Tree::Call(name, arguments) => Tree::Call(name, arguments.into_iter().map(fold).collect()),
        other => other,
    }
}

fn weight(tree: &Tree) -> usize {
    match tree {
        Tree::Number(n) => *n as usize & 0xff,
        Tree::Name(n) => *n,
        Tree::Call(n, arguments) => n + arguments.iter().map(weight).sum::<usize>(),
        Tree::Two(_, a, b) => weight(a) * 3 + weight(b),
    }
}
