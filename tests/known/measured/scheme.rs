// expected advice: convert AS4 in run
//
// Runs small Lisp scripts, each in a separate interpreter. Every call of a function makes an
// environment, and lists are made of pairs. Both are dropped when nothing refers to them.
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Clone)]
enum Value {
    Nil,
    Number(i64),
    Pair(Rc<(Value, Value)>),
    Lambda(Rc<Lambda>),
    Builtin(fn(&[Value]) -> Value),
}

struct Lambda {
    parameters: Vec<u32>,
    body: Rc<Code>,
    inside: Rc<Environment>,
}

enum Code {
    Number(i64),
    Name(u32),
    If(Box<[Code; 3]>),
    Define(u32, Box<Code>),
    Lambda(Vec<u32>, Rc<Code>),
    Call(Vec<Code>),
}

struct Environment {
    names: RefCell<Vec<(u32, Value)>>,
    outside: Option<Rc<Environment>>,
}

impl Environment {
    fn get(&self, name: u32) -> Value {
        let mut at = self;
        loop {
            if let Some((_, value)) = at.names.borrow().iter().find(|(known, _)| *known == name) {
                return value.clone();
            }
            at = at.outside.as_ref().expect("each name is defined");
        }
    }
}

/// Reads code, and gives each name a number.
struct Reader<'t> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'t>>,
    numbers: HashMap<String, u32>,
}

impl Reader<'_> {
    fn number_of(&mut self, name: &str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(name.to_string()).or_insert(next)
    }

    fn names(&mut self) -> Vec<u32> {
        let mut all = Vec::new();
        self.words.next(); // the parenthesis
        while let Some(word) = self.words.next().filter(|word| *word != ")") {
            all.push(self.number_of(word));
        }
        all
    }

    fn code(&mut self) -> Code {
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
                Code::If(Box::new([self.code(), self.code(), self.code()]))
            }
            "define" => {
                self.words.next();
                let name = self.words.next().expect("a name follows");
                Code::Define(self.number_of(name), Box::new(self.code()))
            }
            "lambda" => {
                self.words.next();
                Code::Lambda(self.names(), Rc::new(self.code()))
            }
            _ => {
                let mut all = Vec::new();
                while *self.words.peek().expect("the code is complete") != ")" {
                    all.push(self.code());
                }
                Code::Call(all)
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

fn builtins() -> [(&'static str, fn(&[Value]) -> Value); 8] {
    [
        ("+", |of| Value::Number(number(&of[0]).wrapping_add(number(&of[1])))),
        ("-", |of| Value::Number(number(&of[0]).wrapping_sub(number(&of[1])))),
        ("mod", |of| Value::Number(number(&of[0]).rem_euclid(number(&of[1]).max(1)))),
        ("<", |of| Value::Number((number(&of[0]) < number(&of[1])).into())),
        ("cons", |of| Value::Pair(Rc::new((of[0].clone(), of[1].clone())))),
        ("head", |of| match &of[0] {
            Value::Pair(pair) => pair.0.clone(),
            _ => Value::Nil,
        }),
        ("tail", |of| match &of[0] {
            Value::Pair(pair) => pair.1.clone(),
            _ => Value::Nil,
        }),
        ("empty", |of| Value::Number(matches!(of[0], Value::Nil).into())),
    ]
}

fn evaluate(code: &Code, inside: &Rc<Environment>) -> Value {
    match code {
        Code::Number(number) => Value::Number(*number),
        Code::Name(name) => inside.get(*name),
        Code::If(parts) => match evaluate(&parts[0], inside) {
            Value::Nil | Value::Number(0) => evaluate(&parts[2], inside),
            _ => evaluate(&parts[1], inside),
        },
        Code::Define(name, of) => {
            let value = evaluate(of, inside);
            inside.names.borrow_mut().push((*name, value.clone()));
            value
        }
        Code::Lambda(parameters, body) => Value::Lambda(Rc::new(Lambda {
            parameters: parameters.clone(),
            body: body.clone(),
            inside: inside.clone(),
        })),
        Code::Call(parts) => {
            let called = evaluate(&parts[0], inside);
            let values: Vec<Value> = parts[1..].iter().map(|part| evaluate(part, inside)).collect();
            call(&called, values)
        }
    }
}

fn call(called: &Value, values: Vec<Value>) -> Value {
    match called {
        Value::Builtin(function) => function(&values),
        Value::Lambda(lambda) => {
            let names = lambda.parameters.iter().copied().zip(values).collect();
            let inside = Rc::new(Environment {
                names: RefCell::new(names),
                outside: Some(lambda.inside.clone()),
            });
            evaluate(&lambda.body, &inside)
        }
        _ => Value::Nil,
    }
}

/// Returns the sum of the numbers in all results of a script.
fn run(script: &str) -> i64 {
    let mut reader =
        Reader { words: script.split_whitespace().peekable(), numbers: HashMap::new() };
    let mut names = vec![(reader.number_of("nil"), Value::Nil)];
    for (name, function) in builtins() {
        names.push((reader.number_of(name), Value::Builtin(function)));
    }
    let global = Rc::new(Environment { names: RefCell::new(names), outside: None });
    let mut sum = 0_i64;
    while reader.words.peek().is_some() {
        let mut result = evaluate(&reader.code(), &global);
        while let Value::Pair(pair) = result {
            sum = sum.wrapping_mul(31).wrapping_add(number(&pair.0));
            result = pair.1.clone();
        }
        sum = sum.wrapping_add(number(&result));
    }
    global.names.borrow_mut().clear(); // functions refer to the environment that contains them
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
    let mut sum = 0_i64;
    for round in 0..rounds {
        let (count, step, depth) = (60 + round % 50, 17 + round % 90, 9 + round % 5);
        let script = format!(
            "{LIBRARY} ( define scatter ( lambda ( x ) ( mod ( + x ( + x {step} ) ) 101 ) ) )
            ( sort ( map scatter ( range 0 {count} ) ) )
            ( filter ( lambda ( x ) ( < ( mod x 7 ) 3 ) ) ( map scatter ( range {step} 200 ) ) )
            ( fib {depth} )"
        );
        sum = sum.wrapping_mul(31).wrapping_add(run(&script));
    }
    println!("checksum of the results: {sum:016x}");
}
