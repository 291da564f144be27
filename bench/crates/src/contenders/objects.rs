//! The contenders that make objects one by one and free them one by one.

use crate::harness::Why;
use fastalloc::Poolable;
use heapless::box_pool;
use heapless::pool::boxed::BoxPool;

/// A capacity, and the rule by which a pool grows beyond it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub capacity: usize,
    pub growth: Growth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The pool does not grow.
    None,
    /// The pool grows by `add` objects at each step, up to `most`.
    Linear { add: usize, most: usize },
    /// The pool doubles at each step, up to `most`.
    Double { most: usize },
}

impl Plan {
    pub fn of(capacity: usize) -> Self {
        Self { capacity, growth: Growth::None }
    }

    /// Returns the maximum number of objects that are live at the same time.
    pub fn most(&self) -> usize {
        match self.growth {
            Growth::None => self.capacity,
            Growth::Linear { most, .. } | Growth::Double { most } => most,
        }
    }
}

/// The functions of a pool that the benchmarks call. An object is dropped with its handle.
pub trait Objects<T: Object>: Sized + 'static {
    type Handle<'p>;

    /// Whether the pool can free a single object.
    const TAKES_BACK: bool = true;

    fn name() -> String;
    fn new(plan: Plan) -> Result<Self, Why>;
    /// Makes an object. A program never has more live objects than its `Plan` allows.
    fn make(&self, value: T) -> Self::Handle<'_>;
    fn get<'a>(&'a self, handle: &'a Self::Handle<'_>) -> &'a T;
    fn get_mut<'a>(&'a self, handle: &'a mut Self::Handle<'_>) -> &'a mut T;
    /// Drops an object. This default is right for pools whose handles drop the object.
    #[inline(always)]
    fn give(&self, handle: Self::Handle<'_>) {
        drop(handle);
    }
    /// Frees all objects together, if the pool cannot free objects one by one. Requires that no
    /// handle is left.
    fn clear(&mut self) {}
}

/// A type whose objects the benchmark programs make.
pub trait Object: Clone + Default + Poolable + Send + Sync + 'static {
    /// The static pool for this type. The crate heapless needs one for each type.
    type Heapless: BoxPool<Data = Self> + 'static;

    /// Makes the `i`-th object.
    fn of(i: usize) -> Self;
    /// Returns a number in the object. The benchmark reads these numbers and adds them up.
    fn number(&self) -> u64;
}

macro_rules! objects_of_numbers {
    ($($number:ident, $pool:ident;)*) => {
        $(
            box_pool!($pool: $number);
            impl Object for $number {
                type Heapless = $pool;
                #[inline(always)]
                fn of(i: usize) -> Self {
                    i as $number
                }
                #[inline(always)]
                fn number(&self) -> u64 {
                    *self as u64
                }
            }
        )*
    };
}

objects_of_numbers! {
    i32, I32Boxes;
    u8, U8Boxes;
    u128, U128Boxes;
}

/// An object of 256 bytes.
#[derive(Clone, Default)]
pub struct Large(pub [u64; 32]);

/// fastalloc's game object, of 32 bytes.
#[derive(Clone, Default)]
pub struct Entity {
    pub id: u64,
    pub position: (f32, f32, f32),
    pub velocity: (f32, f32, f32),
    pub health: i32,
    pub is_active: bool,
}

/// fastalloc's connection, with a buffer on the heap.
#[derive(Clone, Default)]
pub struct Connection {
    pub id: u64,
    pub address: [u8; 4],
    pub port: u16,
    pub buffer: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct Particle {
    pub position: (f32, f32, f32),
    pub velocity: (f32, f32, f32),
    pub lifetime: f32,
    pub color: [u8; 4],
}

/// The object of fastalloc's pipeline benchmark, with 100 numbers on the heap.
#[derive(Clone, Default)]
pub struct Part {
    pub id: u64,
    pub data: Vec<f64>,
    pub is_processed: bool,
}

macro_rules! objects_of_structs {
    ($($object:ident, $pool:ident, $make:expr, $number:expr;)*) => {
        $(
            box_pool!($pool: $object);
            impl Poolable for $object {}
            impl Object for $object {
                type Heapless = $pool;
                #[inline(always)]
                fn of(i: usize) -> Self {
                    let make: fn(usize) -> Self = $make;
                    make(i)
                }
                #[inline(always)]
                fn number(&self) -> u64 {
                    let number: fn(&Self) -> u64 = $number;
                    number(self)
                }
            }
        )*
    };
}

objects_of_structs! {
    Large, LargeBoxes, |i| Large([i as u64; 32]), |o| o.0[0];
    Entity, EntityBoxes, |i| Entity {
        id: i as u64,
        velocity: (1.0, 0.0, 0.0),
        health: 100,
        is_active: true,
        ..Entity::default()
    }, |o| o.id;
    Connection, ConnectionBoxes, |i| Connection {
        id: i as u64,
        address: [127, 0, 0, 1],
        port: 8080 + (i % 100) as u16,
        buffer: Vec::with_capacity(1024),
    }, |o| o.id;
    Particle, ParticleBoxes, |_| Particle {
        velocity: (1.0, 2.0, 0.5),
        lifetime: 1.0,
        color: [255; 4],
        ..Particle::default()
    }, |o| u64::from(o.color[0]);
    Part, PartBoxes, |i| Part {
        id: i as u64,
        data: vec![0.0; 100],
        is_processed: false,
    }, |o| o.id;
}
