//! Reading of JSON that never fails over what is not there: a null is the default of its type, a number in quotes is a number,
//! one too large for its type is the largest. Together
//! with `#[serde(default)]` on every struct it makes missing keys and nulls of other MAAS versions harmless. Used for every answer.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

/// A deserializer that reads as the module says, at every depth.
pub(crate) struct Tolerant<D>(pub D);

/// What the type asked for, hence what a null stands for.
#[derive(Clone, Copy)]
enum Wanted {
    Anything,
    Bool,
    /// From and to.
    Integer(i128, i128),
    Float,
    Text,
    List,
    Map,
}

struct Reader<V> {
    visitor: V,
    wanted: Wanted,
}

impl<D> Tolerant<D> {
    fn read<'de, V: Visitor<'de>>(self, wanted: Wanted, visitor: V) -> Result<V::Value, D::Error>
    where
        D: Deserializer<'de>,
    {
        self.0.deserialize_any(Reader { visitor, wanted })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Tolerant<D> {
    type Error = D::Error;

    /// As it is: JSON values that are kept without being understood.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Bool, visitor)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(i8::MIN.into(), i8::MAX.into()), visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(i16::MIN.into(), i16::MAX.into()), visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(i32::MIN.into(), i32::MAX.into()), visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(i64::MIN.into(), i64::MAX.into()), visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(u8::MIN.into(), u8::MAX.into()), visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(u16::MIN.into(), u16::MAX.into()), visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(u32::MIN.into(), u32::MAX.into()), visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Integer(u64::MIN.into(), u64::MAX.into()), visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Float, visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Float, visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Text, visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Text, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::List, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Map, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, _: &'static [&'static str], visitor: V) -> Result<V::Value, D::Error> {
        self.read(Wanted::Map, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Reader { visitor, wanted: Wanted::Anything })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_identifier(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(visitor)
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct enum }
}

impl<'de, V: Visitor<'de>> Reader<V> {
    /// The nearest number the type has.
    fn visit_integer<E: Error>(self, value: i128, least: i128, most: i128) -> Result<V::Value, E> {
        let value = value.clamp(least, most);
        match (i64::try_from(value), u64::try_from(value)) {
            (Ok(signed), _) => self.visitor.visit_i64(signed),
            (_, Ok(unsigned)) => self.visitor.visit_u64(unsigned),
            _ => self.visitor.visit_i128(value),
        }
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Reader<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(formatter)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        match self.wanted {
            Wanted::Anything => self.visitor.visit_none(),
            Wanted::Bool => self.visitor.visit_bool(false),
            Wanted::Integer(..) => self.visitor.visit_i64(0),
            Wanted::Float => self.visitor.visit_f64(0.0),
            Wanted::Text => self.visitor.visit_str(""),
            Wanted::List => self.visitor.visit_seq(SeqDeserializer::<_, E>::new(std::iter::empty::<()>())),
            Wanted::Map => self.visitor.visit_map(MapDeserializer::<_, E>::new(std::iter::empty::<((), ())>())),
        }
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Tolerant(deserializer))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<V::Value, E> {
        match self.wanted {
            Wanted::Text => self.visitor.visit_string(value.to_string()),
            Wanted::Integer(..) => self.visitor.visit_i64(value.into()),
            _ => self.visitor.visit_bool(value),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<V::Value, E> {
        match self.wanted {
            Wanted::Text => self.visitor.visit_string(value.to_string()),
            Wanted::Bool => self.visitor.visit_bool(value != 0),
            Wanted::Integer(least, most) => self.visit_integer(value.into(), least, most),
            _ => self.visitor.visit_i64(value),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<V::Value, E> {
        match self.wanted {
            Wanted::Text => self.visitor.visit_string(value.to_string()),
            Wanted::Bool => self.visitor.visit_bool(value != 0),
            Wanted::Integer(least, most) => self.visit_integer(value.into(), least, most),
            _ => self.visitor.visit_u64(value),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        match self.wanted {
            Wanted::Text => self.visitor.visit_string(value.to_string()),
            #[expect(clippy::cast_possible_truncation, reason = "a fraction of a core or a byte means nothing to anybody")]
            Wanted::Integer(least, most) => self.visit_integer(value as i128, least, most),
            _ => self.visitor.visit_f64(value),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<V::Value, E> {
        match (self.wanted, value.trim().parse::<f64>()) {
            (Wanted::Integer(least, most), Ok(number)) => match value.trim().parse::<i128>() {
                Ok(exact) => self.visit_integer(exact, least, most),
                Err(_) => self.visit_f64(number),
            },
            (Wanted::Float, Ok(number)) => self.visitor.visit_f64(number),
            (Wanted::Integer(..) | Wanted::Float, Err(_)) if value.trim().is_empty() => self.visit_unit(),
            (Wanted::Bool, _) if value == "true" || value == "false" => self.visitor.visit_bool(value == "true"),
            _ => self.visitor.visit_str(value),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        // A struct would take a list for its fields in order.
        if matches!(self.wanted, Wanted::Map) {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        self.visitor.visit_seq(TolerantAccess(access))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(TolerantAccess(access))
    }
}

struct TolerantAccess<A>(A);

struct TolerantSeed<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for TolerantSeed<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Tolerant(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for TolerantAccess<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(TolerantSeed(seed))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for TolerantAccess<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(TolerantSeed(seed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Sample {
        text: String,
        count: u32,
        size: f64,
        yes: bool,
        list: Vec<String>,
        map: BTreeMap<String, i64>,
        maybe: Option<i64>,
        inner: Option<Box<Sample>>,
    }

    fn read(json: &str) -> Sample {
        Sample::deserialize(Tolerant(&mut serde_json::Deserializer::from_str(json))).unwrap()
    }

    #[test]
    fn nulls_are_the_defaults_of_their_types_at_every_depth() {
        assert_eq!(
            read(r#"{"text":null,"count":null,"size":null,"yes":null,"list":null,"map":null,"maybe":null,"inner":null}"#),
            Sample::default()
        );
        let nested = read(r#"{"inner":{"text":null,"list":[null,"b"],"map":{"a":null},"unheard":{"of":[]}}}"#).inner.unwrap();
        assert_eq!((nested.list, nested.map), (vec![String::new(), "b".to_owned()], BTreeMap::from([("a".to_owned(), 0)])));
    }

    #[test]
    fn a_list_is_no_struct() {
        assert!(Sample::deserialize(Tolerant(&mut serde_json::Deserializer::from_str(r#"["a", 1]"#))).is_err());
    }

    #[test]
    fn numbers_in_quotes_and_texts_without_are_understood() {
        let sample = read(r#"{"text":7,"count":"12","size":"1.5","yes":1,"maybe":"-3"}"#);
        assert_eq!((sample.text.as_str(), sample.count, sample.yes, sample.maybe), ("7", 12, true, Some(-3)));
        assert!((sample.size - 1.5).abs() < f64::EPSILON);
        for (text, count) in [("-1", 0), ("7.9", 7), ("5000000000", u32::MAX), ("1e300", u32::MAX), ("\"99999999999999999999\"", u32::MAX)]
        {
            assert_eq!(read(&format!(r#"{{"count":{text}}}"#)).count, count, "{text}");
        }
    }
}
