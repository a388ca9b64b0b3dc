//! Kernels over some rows of tables: the rows as by a leaf of all elements, the others untouched.

use std::sync::Arc;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::rows::Rows;
use oxigrad_core::error::Error;
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise::{Add, Multiply};
use oxigrad_core::simd::dispatch::Isa;

const TABLE: usize = 700;

/// `p + g * noise`, and the slot `m + p * g`.
fn kernel() -> Kernel {
    let nodes = [
        Node::Leaf(0),
        Node::Leaf(1),
        Node::Leaf(2),
        Node::Noise(0),
        Node::Apply(Multiply, [0, 3, 0]),
        Node::Apply(Add, [1, 4, 0]),
        Node::Apply(Multiply, [1, 0, 0]),
        Node::Apply(Add, [2, 6, 0]),
    ];
    Kernel::compile(&nodes, &[5, 7]).unwrap()
}

fn values(count: usize, salt: usize) -> Vec<f32> {
    (0..count).map(|i| f32::from(u16::try_from((i * 37 + salt * 11) % 1009).unwrap()) / 500.0 - 1.0).collect()
}

/// A table with its slot, whose rows may have gaps between them.
struct Tables {
    p: Vec<f32>,
    m: Vec<f32>,
}

impl Tables {
    fn new(width: usize, apart: usize) -> Self {
        Self { p: values(TABLE * width * apart, 1), m: values(TABLE * width, 2) }
    }

    fn buffers(&mut self, width: usize, apart: usize) -> [Buffer; 2] {
        let size = isize::try_from(size_of::<f32>()).unwrap();
        let stride = isize::try_from(width * apart).unwrap() * size;
        let step = isize::try_from(apart).unwrap() * size;
        let p = Buffer::strided(self.p.as_mut_ptr().cast(), &[TABLE, width], &[stride, step], Dtype::F32, true);
        [p.unwrap(), Buffer::contiguous(self.m.as_mut_ptr().cast(), self.m.len(), Dtype::F32, true).unwrap()]
    }
}

fn run(g: &mut [f32], [p, m]: [Buffer; 2], isa: Isa, threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let gradient = Buffer::contiguous(g.as_mut_ptr().cast(), g.len(), Dtype::F32, false).unwrap();
    let (inputs, outputs) = ([gradient, p.clone(), m.clone()], [p, m]);
    let leaf = Leaf {
        inputs: &inputs,
        outputs: &outputs,
        length: g.len(),
        dtype: Dtype::F32,
        scalar_set: 0,
        noise_key: 5,
        first: 0,
    };
    let kernel = kernel();
    let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[leaf] };
    // SAFETY: the arrays are alive and apart.
    unsafe { exec::run(&[batch], isa, Some(&pool)) }.unwrap().unwrap();
}

#[test]
fn rows_are_updated_as_in_the_whole_table() {
    for (width, apart) in [(1, 1), (3, 1), (64, 1), (5, 2), (1500, 1)] {
        let indices: Vec<usize> = (0..TABLE).filter(|row| row % 7 == 3 || row % 50 > 46).collect();
        let dense = values(TABLE * width, 3);
        let touched = |element: usize| indices.binary_search(&(element / width)).is_ok();
        let mut g: Vec<f32> = (0..dense.len()).filter(|at| touched(*at)).map(|at| dense[at]).collect();
        for isa in Isa::available() {
            for threads in [1, 3] {
                let mut whole = Tables::new(width, apart);
                let buffers = whole.buffers(width, apart);
                run(&mut dense.clone(), buffers, isa, threads);

                let (before, mut found) = (Tables::new(width, apart), Tables::new(width, apart));
                let rows = Arc::new(Rows::new(indices.clone(), width).unwrap());
                let buffers = found.buffers(width, apart).map(|buffer| buffer.of_rows(rows.clone()).unwrap());
                run(&mut g, buffers, isa, threads);
                for element in 0..dense.len() {
                    let expected = if touched(element) { &whole } else { &before };
                    let at = element * apart;
                    assert_eq!(found.p[at].to_bits(), expected.p[at].to_bits(), "{width} {isa:?} {threads}: {element}");
                    assert_eq!(found.m[element].to_bits(), expected.m[element].to_bits());
                }
                (0..found.p.len()).filter(|at| at % apart != 0).for_each(|at| {
                    assert_eq!(found.p[at].to_bits(), before.p[at].to_bits());
                });
            }
        }
    }
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let mut tables = Tables::new(4, 1);
    for last in [TABLE, usize::MAX] {
        let rows = Arc::new(Rows::new([3, last], 4).unwrap());
        let [p, _] = tables.buffers(4, 1);
        assert!(matches!(p.of_rows(rows), Err(Error::Shape(_))));
    }
    let empty = Arc::new(Rows::new([], 4).unwrap());
    let [p, m] = tables.buffers(4, 1);
    let p = p.of_rows(empty).unwrap();
    assert!(p.is_empty());
    let inputs = [p.clone(), p.clone(), m.clone()];
    let leaf =
        Leaf { inputs: &inputs, outputs: &[p, m], length: 0, dtype: Dtype::F32, scalar_set: 0, noise_key: 0, first: 0 };
    let kernel = kernel();
    let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[leaf] };
    // SAFETY: nothing is run: the outputs are not of the same rows.
    let refused = unsafe { exec::run(&[batch], Isa::detect(), None) };
    assert!(matches!(refused, Err(Error::Shape(_))), "{refused:?}");
}
