// follows the advice: convert AS4 in run
//
// The program scheme.rs with an arena, which is reset after each script. Values are references into
// the arena, so they need no reference counts.
use mallard::Arena;
use std::cell::Cell;
use std::collections::HashMap;

type Builtin = for<'a> fn(&'a Arena, &[Value<'a>]) -> Value<'a>;

#[derive(Clone, Copy)]
enum Value<'a> {
    Nil,
    Number(i64),
    Pair(&'a (Value<'a>, Value<'a>)),
    Lambda(&'a Lambda<'a>),
    Builtin(Builtin),
}

struct Lambda<'a> {
    parameters: &'a [u32],
    body: &'a Code<'a>,
    inside: &'a Environment<'a>,
}

enum Code<'a> {
    Number(i64),
    Name(u32),
    If(&'a [Code<'a>]),
    Define(u32, &'a Code<'a>),
    Lambda(&'a [u32], &'a Code<'a>),
    Call(&'a [Code<'a>]),
}

struct Environment<'a> {
    parameters: &'a [u32],
    values: &'a [Value<'a>],
    defined: Cell<Option<&'a Defined<'a>>>,
    outside: Option<&'a Environment<'a>>,
}

struct Defined<'a> {
    name: u32,
    value: Value<'a>,
    before: Option<&'a Defined<'a>>,
}

impl<'a> Environment<'a> {
    fn get(&self, name: u32) -> Value<'a> {
        let mut at = self;
        loop {
            if let Some(place) = at.parameters.iter().position(|known| *known == name) {
                return at.values[place];
            }
            let mut defined = at.defined.get();
            while let Some(one) = defined {
                if one.name == name {
                    return one.value;
                }
                defined = one.before;
            }
            at = at.outside.expect("each name is defined");
        }
    }

    fn define(&self, name: u32, value: Value<'a>, memory: &'a Arena) {
        self.defined.set(Some(memory.alloc(Defined { name, value, before: self.defined.get() })));
    }
}

/// Reads code, and gives each name a number.
struct Reader<'t, 'a> {
    memory: &'a Arena,
    words: std::iter::Peekable<std::str::SplitWhitespace<'t>>,
    numbers: HashMap<String, u32>,
}

impl<'a> Reader<'_, 'a> {
    fn number_of(&mut self, name: &str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(name.to_string()).or_insert(next)
    }

    fn names(&mut self) -> &'a [u32] {
        let mut all = Vec::new();
        self.words.next(); // the parenthesis
        while let Some(word) = self.words.next().filter(|word| *word != ")") {
            all.push(self.number_of(word));
        }
        self.memory.alloc_slice_copy(&all)
    }

    fn code(&mut self) -> Code<'a> {
        let word = self.words.next().expect("the code is complete");
        if word != "(" {
            return match word.parse() {
                Ok(number) => Code::Number(number),
                Err(_) => Code::Name(self.number_of(word)),
            };
        }
        let first = *self.words.peek().expect("the code is complete");
        let made = match first {
            "if" => {
                self.words.next();
                Code::If(self.memory.alloc([self.code(), self.code(), self.code()]))
            }
            "define" => {
                self.words.next();
                let name = self.words.next().expect("a name follows");
                Code::Define(self.number_of(name), self.memory.alloc(self.code()))
            }
            "lambda" => {
                self.words.next();
                Code::Lambda(self.names(), self.memory.alloc(self.code()))
            }
            _ => {
                let mut all = Vec::new();
                while *self.words.peek().expect("the code is complete") != ")" {
                    all.push(self.code());
                }
                Code::Call(self.memory.alloc_iter(all))
            }
        };
        self.words.next(); // the parenthesis
        made
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Number(number) => *number,
        _ => 0,
    }
}

fn builtins() -> [(&'static str, Builtin); 8] {
    [
        ("+", |_, of| Value::Number(number(&of[0]).wrapping_add(number(&of[1])))),
        ("-", |_, of| Value::Number(number(&of[0]).wrapping_sub(number(&of[1])))),
        ("mod", |_, of| Value::Number(number(&of[0]).rem_euclid(number(&of[1]).max(1)))),
        ("<", |_, of| Value::Number((number(&of[0]) < number(&of[1])).into())),
        ("cons", |memory, of| Value::Pair(memory.alloc((of[0], of[1])))),
        ("head", |_, of| match &of[0] {
            Value::Pair(pair) => pair.0,
            _ => Value::Nil,
        }),
        ("tail", |_, of| match &of[0] {
            Value::Pair(pair) => pair.1,
            _ => Value::Nil,
        }),
        ("empty", |_, of| Value::Number(matches!(of[0], Value::Nil).into())),
    ]
}

fn evaluate<'a>(code: &Code<'a>, inside: &'a Environment<'a>, memory: &'a Arena) -> Value<'a> {
    match code {
        Code::Number(number) => Value::Number(*number),
        Code::Name(name) => inside.get(*name),
        Code::If(parts) => match evaluate(&parts[0], inside, memory) {
            Value::Nil | Value::Number(0) => evaluate(&parts[2], inside, memory),
            _ => evaluate(&parts[1], inside, memory),
        },
        Code::Define(name, of) => {
            let value = evaluate(of, inside, memory);
            inside.define(*name, value, memory);
            value
        }
        Code::Lambda(parameters, body) => {
            Value::Lambda(memory.alloc(Lambda { parameters, body, inside }))
        }
        Code::Call(parts) => {
            let called = evaluate(&parts[0], inside, memory);
            let values = parts[1..].iter().map(|part| evaluate(part, inside, memory));
            call(called, memory.alloc_iter(values), memory)
        }
    }
}

fn call<'a>(called: Value<'a>, values: &'a [Value<'a>], memory: &'a Arena) -> Value<'a> {
    match called {
        Value::Builtin(function) => function(memory, values),
        Value::Lambda(lambda) => {
            let inside = memory.alloc(Environment {
                parameters: lambda.parameters,
                values,
                defined: Cell::new(None),
                outside: Some(lambda.inside),
            });
            evaluate(lambda.body, inside, memory)
        }
        _ => Value::Nil,
    }
}

/// Returns the sum of the numbers in all results of a script.
fn run(script: &str, memory: &Arena) -> i64 {
    let words = script.split_whitespace().peekable();
    let mut reader = Reader { memory, words, numbers: HashMap::new() };
    let global = &*memory.alloc(Environment {
        parameters: &[],
        values: &[],
        defined: Cell::new(None),
        outside: None,
    });
    global.define(reader.number_of("nil"), Value::Nil, memory);
    for (name, function) in builtins() {
        global.define(reader.number_of(name), Value::Builtin(function), memory);
    }
    let mut sum = 0_i64;
    while reader.words.peek().is_some() {
        let mut result = evaluate(&reader.code(), global, memory);
        while let Value::Pair(pair) = result {
            sum = sum.wrapping_mul(31).wrapping_add(number(&pair.0));
            result = pair.1;
        }
        sum = sum.wrapping_add(number(&result));
    }
    sum
}

const LIBRARY: &str = "
( define range ( lambda ( from to )
    ( if ( < from to ) ( cons from ( range ( + from 1 ) to ) ) nil ) ) )
( define map ( lambda ( f list )
    ( if ( empty list ) nil ( cons ( f ( head list ) ) ( map f ( tail list ) ) ) ) ) )
( define filter ( lambda ( f list )
    ( if ( empty list ) nil
        ( if ( f ( head list ) ) ( cons ( head list ) ( filter f ( tail list ) ) )
            ( filter f ( tail list ) ) ) ) ) )
( define join ( lambda ( first second )
    ( if ( empty first ) second ( cons ( head first ) ( join ( tail first ) second ) ) ) ) )
( define sort ( lambda ( list )
    ( if ( empty list ) nil
        ( join ( sort ( filter ( lambda ( x ) ( < x ( head list ) ) ) ( tail list ) ) )
            ( cons ( head list )
                ( sort ( filter ( lambda ( x ) ( < ( - ( head list ) 1 ) x ) ) ( tail list ) ) ) ) ) ) ) )
( define fib ( lambda ( n ) ( if ( < n 2 ) n ( + ( fib ( - n 1 ) ) ( fib ( - n 2 ) ) ) ) ) )
";

fn main() {
    let rounds = std::env::args().nth(1).map_or(450, |rounds| rounds.parse().expect("a number"));
    let mut memory = Arena::new();
    let mut sum = 0_i64;
    for round in 0..rounds {
        let (count, step, depth) = (60 + round % 50, 17 + round % 90, 9 + round % 5);
        let script = format!(
            "{LIBRARY} ( define scatter ( lambda ( x ) ( mod ( + x ( + x {step} ) ) 101 ) ) )
            ( sort ( map scatter ( range 0 {count} ) ) )
            ( filter ( lambda ( x ) ( < ( mod x 7 ) 3 ) ) ( map scatter ( range {step} 200 ) ) )
            ( fib {depth} )"
        );
        sum = sum.wrapping_mul(31).wrapping_add(run(&script, &memory));
        memory.reset();
    }
    println!("checksum of the results: {sum:016x}");
}
