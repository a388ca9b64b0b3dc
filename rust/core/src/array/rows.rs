//! Some rows of a table, as one array, for gradients that touch few rows.

use crate::error::{Error, Result};

/// Rows of a table, each of `width` elements, by index; element `e` is in the row `indices[e / width]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    indices: Box<[usize]>,
    width: usize,
}

impl Rows {
    /// The rows of these indices, which must be strictly increasing.
    ///
    /// # Errors
    /// `Shape` if they do not, or have more elements than there are numbers.
    pub fn new(indices: impl Into<Box<[usize]>>, width: usize) -> Result<Self> {
        let indices = indices.into();
        match indices.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(Error::Shape(format!(
                "found row {} before row {}, expected strictly increasing indices",
                pair[0], pair[1]
            ))),
            None if indices.len().checked_mul(width).is_none() => {
                Err(Error::Shape(format!("{} rows of {width} elements leave the address space", indices.len())))
            }
            None => Ok(Self { indices, width }),
        }
    }

    /// The number of elements of each row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len() * self.width
    }

    /// The number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.indices.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of elements of the smallest table that has these rows; `None` on overflow.
    pub(crate) fn reach(&self) -> Option<usize> {
        self.indices.last().map_or(Some(0), |last| last.checked_add(1)?.checked_mul(self.width))
    }

    /// Calls `f(element, place, count)` for each run of `count` elements that follow each other in the table: `element`
    /// is the first of them there, `place` how many came before it from `start` on.
    #[inline(always)]
    pub(crate) fn runs(&self, start: usize, length: usize, mut f: impl FnMut(usize, usize, usize)) {
        let mut done = 0;
        while done < length {
            let (row, column) = ((start + done) / self.width, (start + done) % self.width);
            let count = (self.width - column).min(length - done);
            f(self.indices[row] * self.width + column, done, count);
            done += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_must_grow() {
        assert!(Rows::new([0, 3, 4], 2).is_ok());
        for indices in [[0, 0], [3, 2]] {
            assert!(matches!(Rows::new(indices, 2), Err(Error::Shape(_))));
        }
        assert_eq!(Rows::new([usize::MAX], 2).unwrap().reach(), None);
    }

    #[test]
    fn runs_meet_every_element_once() {
        let rows = Rows::new([1, 4, 5, 9], 3).unwrap();
        let elements = [3, 4, 5, 12, 13, 14, 15, 16, 17, 27, 28, 29];
        for start in 0..elements.len() {
            for length in 0..=elements.len() - start {
                let mut met = vec![usize::MAX; length];
                rows.runs(start, length, |element, place, count| {
                    (0..count).for_each(|k| met[place + k] = element + k);
                });
                assert_eq!(met, elements[start..start + length]);
            }
        }
    }
}
