//! Reads messages of protocol buffers field by field, without knowing their types.

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An integer or a boolean.
    Number(u64),
    /// A string, a message, or packed integers.
    Bytes(Vec<u8>),
}

/// A message, which consists of the numbers of its fields, and their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message(pub Vec<(u64, Value)>);

/// Reads a number with 7 bits in each byte, the lowest bits first.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

impl Message {
    /// Parses a message.
    pub fn parse(mut bytes: &[u8]) -> Message {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(value.to_vec())
                }
                other => panic!("a field of the wire type {other}"),
            };
            fields.push((tag >> 3, value));
        }
        Message(fields)
    }

    fn of(&self, field: u64) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |(number, _)| *number == field).map(|(_, value)| value)
    }

    /// Returns the integers of a field, packed or not.
    pub fn numbers(&self, field: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        for value in self.of(field) {
            match value {
                Value::Number(number) => numbers.push(*number),
                Value::Bytes(packed) => {
                    let mut packed = packed.as_slice();
                    while !packed.is_empty() {
                        numbers.push(varint(&mut packed));
                    }
                }
            }
        }
        numbers
    }

    /// Returns the only integer of a field; 0 if there is none.
    pub fn number(&self, field: u64) -> u64 {
        self.numbers(field).first().copied().unwrap_or(0)
    }

    /// Returns the messages of a field.
    pub fn messages(&self, field: u64) -> Vec<Message> {
        let message = |value: &Value| match value {
            Value::Bytes(bytes) => Message::parse(bytes),
            Value::Number(number) => panic!("{number} is no message"),
        };
        self.of(field).map(message).collect()
    }

    /// Returns the strings of a field.
    pub fn texts(&self, field: u64) -> Vec<String> {
        let text = |value: &Value| match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.clone()).expect("UTF-8"),
            Value::Number(number) => panic!("{number} is no string"),
        };
        self.of(field).map(text).collect()
    }
}
