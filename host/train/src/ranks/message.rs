//! Values as bytes, bit for bit.

use crate::experience::SampleId;

/// A value that a rank sends to others.
pub(crate) trait Message: Sized {
    /// Appends the value.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes the value from the beginning of `from`; `None` if it is not there.
    fn read(from: &mut &[u8]) -> Option<Self>;
}

impl Message for u64 {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.to_le_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(Self::from_le_bytes(*bytes))
    }
}

impl Message for usize {
    fn write(&self, to: &mut Vec<u8>) {
        (*self as u64).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u64::read(from)?.try_into().ok()
    }
}

impl Message for f64 {
    fn write(&self, to: &mut Vec<u8>) {
        self.to_bits().write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u64::read(from).map(Self::from_bits)
    }
}

impl Message for String {
    fn write(&self, to: &mut Vec<u8>) {
        self.len().write(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let length = usize::read(from)?;
        let (bytes, rest) = from.split_at_checked(length)?;
        *from = rest;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

impl<T: Message> Message for Vec<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.len().write(to);
        self.iter().for_each(|value| value.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let length = usize::read(from)?;
        (0..length).map(|_| T::read(from)).collect()
    }
}

impl<T: Message> Message for Option<T> {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(u8::from(self.is_some()));
        self.iter().for_each(|value| value.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (is_some, rest) = from.split_first()?;
        *from = rest;
        if *is_some == 1 { T::read(from).map(Some) } else { Some(None) }
    }
}

impl<T: Message, E: Message> Message for Result<T, E> {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(u8::from(self.is_ok()));
        match self {
            Ok(value) => value.write(to),
            Err(error) => error.write(to),
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (is_ok, rest) = from.split_first()?;
        *from = rest;
        if *is_ok == 1 { T::read(from).map(Ok) } else { E::read(from).map(Err) }
    }
}

impl<T: Message, const N: usize> Message for [T; N] {
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let values: Option<Vec<T>> = (0..N).map(|_| T::read(from)).collect();
        values?.try_into().ok()
    }
}

impl<A: Message, B: Message> Message for (A, B) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }
}

impl Message for SampleId {
    fn write(&self, to: &mut Vec<u8>) {
        [self.group, self.index, self.trajectory].write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let [group, index, trajectory] = Message::read(from)?;
        Some(Self { group, index, trajectory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_bit_for_bit_and_what_is_cut_is_not() {
        type All = Result<Vec<(SampleId, Option<f64>)>, String>;
        let sample = SampleId { group: 1, index: 2, trajectory: 3 };
        for value in [
            Ok(vec![(sample, Some(-0.0)), (SampleId::default(), None), (sample, Some(f64::MIN_POSITIVE / 3.0))]),
            Ok(Vec::new()),
            Err("row 3 of the mini-batch has …".to_owned()),
        ] {
            let mut bytes = Vec::new();
            value.write(&mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(All::read(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(All::read(&mut &bytes[..bytes.len() - 1]), None);
        }
        let mut bytes = Vec::new();
        f64::NAN.write(&mut bytes);
        assert!(f64::read(&mut bytes.as_slice()).unwrap().is_nan());
    }
}
