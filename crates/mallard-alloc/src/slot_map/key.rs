//! Names for the elements of keyed collections: integers that are never given twice.

use core::fmt::Debug;
use core::hash::Hash;

/// Names one element of a [`SlotMap`](crate::SlotMap), for ever: the number of its slot, and
/// which of those that have lived there it is, its generation.
///
/// Types of keys are made by [`key_type!`](crate::key_type); [`Key32`] and [`Key64`] are there.
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
/// A key is never 0, so an `Option` of one takes no more room. The default key is null and names
/// nothing. Any other integer may become a key: one that was never given names nothing.
///
/// Layout: the index is in the low bits, the generation above it. The order is that of the
/// integers: by generation first.
///
/// # Safety
/// `to_bits` gives what `from_bits` was given, never 0; equality and order are those of the
/// bits. What `key_type!` makes is so.
pub unsafe trait Key:
    Copy + Eq + Ord + Hash + Debug + Default + Send + Sync + 'static
{
    /// `u32` or `u64`.
    type Bits: Bits;

    /// A map of this key has 2^`INDEX_BITS` - 1 slots at most.
    const INDEX_BITS: u32;
    /// Each of them for 2^`GENERATION_BITS` - 1 elements.
    const GENERATION_BITS: u32;
    /// Whether a slot whose generations are used up begins again, so that a very old key may
    /// name a new element. Otherwise it retires.
    const WRAPPING: bool;

    /// The key as an integer, never 0.
    fn to_bits(self) -> Self::Bits;

    /// The key that an integer is; `None` for 0. Any other will do.
    fn from_bits(bits: Self::Bits) -> Option<Self>;

    /// A key that names nothing, in any map.
    #[inline]
    fn null() -> Self {
        // Index 1 and generation 0, which is nobody's.
        match Self::from_bits(Self::Bits::from_u64(1)) {
            Some(key) => key,
            None => unreachable!("1 is not 0"),
        }
    }

    /// Whether it is the null key; another may name nothing all the same.
    #[inline]
    fn is_null(self) -> bool {
        self.to_bits().to_u64() == 1
    }

    /// The number of its slot, from 1 on.
    #[inline]
    fn index(self) -> usize {
        Words::<Self>::index(self.to_bits())
    }

    /// Which of its slot's elements it names, from 1 on.
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

/// What a key may be made of: `u32` and `u64`.
pub trait Bits: Copy + Eq + Ord + Debug + Send + Sync + 'static + sealed::Sealed {
    /// The same, and never 0.
    #[doc(hidden)]
    type NonZero: Copy;
    #[doc(hidden)]
    fn from_u64(value: u64) -> Self;
    /// The same integer.
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

/// What stands in the words of keyed slots. Each slot has a word beside its value:
///
/// ```text
/// live        { generation, own index }   its key
/// at hand     { 0, 0 }                    its next key is in the magazine
/// idle        { generation, 0 }           of its next key; its bit among the idle is set
/// detached    { generation, 0 }           of its key; that bit is not set
/// retired     { 0, 0 }                    for ever
/// fresh       { 0, 0 }
/// slot 0      { 0, 0 }                    it has no value
/// ```
///
/// So one comparison of a whole key with the word of the slot that it addresses says whether
/// it is alive: no other state has the slot's own index, and no key is 0.
///
/// An index is cut to a power of two of slots, by a mask, before it is used. Any integer
/// addresses some slot then, and if it is not that slot's own it differs from its word all the
/// same: every index in a word is that of the slot, or 0 where the slot is not slot 0.
pub(crate) struct Words<K>(core::marker::PhantomData<K>);

impl<K: Key> Words<K> {
    pub(crate) const INDEX_MASK: u64 = (1 << K::INDEX_BITS) - 1;
    const ONE_GENERATION: u64 = 1 << K::INDEX_BITS;
    pub(crate) const VALUE_MAX: u64 = u64::MAX >> (64 - K::INDEX_BITS - K::GENERATION_BITS);
    #[allow(dead_code)] // not on every target
    pub(crate) const GENERATION_MAX: u64 = Self::VALUE_MAX >> K::INDEX_BITS;
    /// Slots that a key can name, slot 0 included, as far as this machine can count them.
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
    /// The word of a slot that is idle or detached: its key but for the index.
    #[inline(always)]
    pub(crate) fn without_index(key: K::Bits) -> K::Bits {
        K::Bits::from_u64(key.to_u64() & !Self::INDEX_MASK)
    }
    /// The next of the same slot. Below `key` when there was none left.
    #[inline(always)]
    pub(crate) fn after(key: K::Bits) -> K::Bits {
        K::Bits::from_u64(key.to_u64().wrapping_add(Self::ONE_GENERATION) & Self::VALUE_MAX)
    }
    /// The key in a word or magazine, which is not 0.
    #[inline(always)]
    pub(crate) fn known(word: K::Bits) -> K {
        debug_assert!(word.to_u64() != 0);
        // SAFETY: the words of live slots and the keys at hand have a generation.
        unsafe { K::from_bits(word).unwrap_unchecked() }
    }
}

/// Chooses the integer of a key by its width.
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

/// Makes types of keys: bits of the index, bits of the generation, 64 at most in both, and 4
/// bytes instead of 8 if they are 32 at most.
///
/// ```
/// mallard::key_type! {
///     /// Names an enemy.
///     pub struct EnemyKey(20, 12);
///     /// Begins again when the generations of a slot are used up: 255 elements later an
///     /// old key may name a new bullet.
///     pub struct BulletKey(24, 8, wrapping);
/// }
/// # assert_eq!((size_of::<EnemyKey>(), size_of::<BulletKey>()), (4, 4));
/// ```
///
/// With the feature `serde` they are serialised as their integer.
///
/// A key of one type is not one of another:
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
            assert!($index >= 2 && $index <= 40, "a key has 2 to 40 bits for the index");
            assert!($generation >= 1 && ($index) + ($generation) <= 64,
                "a key has 64 bits at most, and one of them for the generation");
            type Bits = <$crate::__key::Width<{ ($index) + ($generation) > 32 }>
                as $crate::__key::Select>::Bits;

            // SAFETY: one integer, and what is derived from it.
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
                /// The null key.
                fn default() -> Self {
                    <Self as $crate::Key>::null()
                }
            }
            /// Index and generation: `EnemyKey(12v3)`.
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
    /// A million slots, each for 4,095 elements.
    pub struct Key32(20, 12);
    /// Four billion slots, each for as many elements.
    pub struct Key64(32, 32);
}
