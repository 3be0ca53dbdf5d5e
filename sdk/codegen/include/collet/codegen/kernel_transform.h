// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>

#include <cstddef>
#include <vector>

/// \file
/// Transformations of loop nests that do not change the results of a kernel.

namespace collet::codegen {

/// Merges adjacent loops if every access addresses the two as it would address one loop of both sizes, and drops loops
/// of size 1, except that of a scan. Loops before `first` are not changed.
void collapse_loops(Kernel& kernel, size_t first = 0);

/// Splits loop `loop`, whose size is a multiple of `inside`, into two: the new loop has `inside` iterations. The new
/// loop comes after the other one, or before it if `inside_first`, which changes the order of the points.
void split_loop(Kernel& kernel, size_t loop, int64_t inside, bool inside_first = false);

/// Cuts the rows of a kernel into blocks. The first outer loops, whose sizes must have the product `rows`, count the
/// rows; the last of them must have a multiple of `block` iterations. It is split, so that the loop that follows runs
/// over the rows of a block. Returns how many loops count the blocks then, or 0 if the loops do not suit; the kernel is
/// unchanged in that case.
size_t split_rows(Kernel& kernel, int64_t rows, int64_t block);

/// Makes one loop of the first `count` loops, which must be outer loops. Unlike collapse_loops, computes the variables
/// of the old loops by division where accesses need them.
void merge_first_loops(Kernel& kernel, size_t count);

/// Splits loops whose variable is divided by a number that divides their size, as those of a reshape are: the quotient
/// and the remainder become the variables of two loops, so that accesses are affine in them. Divisors less than `least`
/// are left as they are. Threads share the iterations of the first loop: if its
/// quotients are fewer than `shared` and than the remainders, the loop over the remainders becomes the first.
void split_loops(Kernel& kernel, int64_t least, int64_t shared);

/// Changes the type of elements that the kernel only copies to unsigned integers of the same width, so that they are not converted
/// or split into parts. Does nothing if the kernel has other operations than loads, selects and stores on such elements. `pairs`: also those
/// of c64, which C text must not read as other than floats where another kernel has written them.
void move_as_integers(Kernel& kernel, bool pairs = true);

/// Reorders the loops: loop `order[i]` becomes loop i. Outer loops must stay before inner ones.
void reorder_loops(Kernel& kernel, const std::vector<size_t>& order);

/// Changes a maximum or minimum of long rows of f16 or bf16 to one of integers, whose vectors have twice as many lanes.
/// The order of the integers is that of the floats; the results are the same for NaN and for zeros of both signs, too.
/// Returns false, and changes nothing, if the rows are shorter than `least`, or the kernel computes anything else from their elements.
bool compare_as_integers(Kernel& kernel, int64_t least);

/// Computes reductions by a product of three or more f32, narrower or c64 numbers in f64 (c128), and rounds them once at the end. In
/// f32, each multiplication loses up to half a unit in the last place, and the order in which lanes multiply may overflow. Returns false, and
/// changes nothing, if the kernel has no such product.
bool widen_products(Kernel& kernel);

/// Reorders the outer loops: the loops of each group, listed from the outermost, are merged to one loop, and the merged
/// loops follow in the order of `groups`. An empty group becomes a loop of size 1. Loops in no group must have size 1.
/// Returns false if some access does not address a group as it would address one loop; the kernel must not be used
/// then.
bool regroup_loops(Kernel& kernel, const std::vector<std::vector<size_t>>& groups);

}  // namespace collet::codegen
