// SPDX-License-Identifier: Apache-2.0
// Compiles factorizations and triangular systems that a library of a device with grids computes, between kernels that
// bring matrices into the library's order and back.
#include "sdk/codegen/lower/factorize.h"

#include <utility>

#include "sdk/codegen/compile/compiler.h"

namespace collet::codegen {

void Compiler::add_factorization(const Node& n, LibraryFactorization f, Drafts& drafts) {
  using Kind = LibraryFactorization::Kind;
  for (ValueId v : n.results) {
    if (graph_.type(v).elements != 0) continue;
    // No matrices, or matrices without elements: all results are empty.
    ++time_;
    for (ValueId result : n.results) write(result);
    return;
  }
  const size_t inputs = f.kind == Kind::kReflectors || f.kind == Kind::kTriangularSolve ? 2 : 1;
  const ValueId* const operands = n.operands.data() + (n.operands.size() - inputs);
  const ArrayType a = graph_.type(operands[0]);
  const Dims batch(a.dims.begin(), a.dims.end() - 2);
  const auto dims_of = [&](std::initializer_list<int64_t> last) {
    Dims dims = batch;
    dims.insert(dims.end(), last);
    return dims;
  };
  const int64_t m = a.dims[a.dims.size() - 2], k = std::min(f.rows, f.columns);
  const ValueId info = temporary(COLLET_TYPE_S32, batch);
  // The places of the library's call: it reads the first ones, which are written before, and writes the others.
  const auto call = [&](const std::vector<ValueId>& before, const std::vector<ValueId>& results) {
    ++time_;
    std::vector<RangeId> ranges;
    for (ValueId v : before) ranges.push_back(read(v));
    for (ValueId v : results) ranges.push_back(write(v));
    add_library_call(f, std::move(ranges), drafts);
  };
  const auto convert = [&](ValueId from, const MatrixCopy& how, ValueId to) {
    KernelPlan kernel = matrix_kernel(graph_, from, how, to);
    add_kernel(kernel, drafts);
  };
  const auto copied = [&](ValueId v) {
    const ArrayType type = graph_.type(v);
    const ValueId to = temporary(type.element, type.dims);
    copy(range(v), to, drafts);
    return to;
  };
  const auto transposed = [&](ValueId v) {
    const Dims& dims = graph_.type(v).dims;
    const ValueId to = temporary(a.element, dims_of({dims.back(), dims[dims.size() - 2]}));
    convert(v, {.transposes = true}, to);
    return to;
  };
  switch (f.kind) {
    case Kind::kCholesky: {
      const ValueId factor = copied(operands[0]);
      call({factor}, {info});
      // The library's lower triangle is the upper one of the result.
      return convert(factor, {.zeroes = f.lower ? -1 : 1, .info = info}, n.results[0]);
    }
    case Kind::kTriangularSolve:
      copy(range(operands[1]), n.results[0], drafts);
      return call({operands[0], n.results[0]}, {});
    case Kind::kLu: {
      const ValueId factors = transposed(operands[0]), pivots = temporary(COLLET_TYPE_S32, dims_of({k}));
      call({factors}, {pivots, n.results[2], info});
      convert(factors, {.transposes = true}, n.results[0]);
      KernelPlan from_zero = decrement_kernel(graph_, pivots, n.results[1]);
      return add_kernel(from_zero, drafts);
    }
    case Kind::kQr: {
      const ValueId reflectors = transposed(operands[0]);
      call({reflectors}, {n.results[1]});
      return convert(reflectors, {.transposes = true}, n.results[0]);
    }
    case Kind::kReflectors: {
      const ValueId reflectors = transposed(operands[0]);
      call({reflectors, operands[1]}, {});
      return convert(reflectors, {.transposes = true}, n.results[0]);
    }
    case Kind::kEigh: {
      // The array of A, read by columns, is the transpose of A and so its conjugate, whose values are the same, and
      // whose vectors are the conjugates of those of A.
      const ValueId vectors = copied(operands[0]);
      const ValueId values = temporary(graph_.type(n.results[1]).element, graph_.type(n.results[1]).dims);
      call({vectors}, {values, info});
      convert(vectors, {.transposes = true, .conjugates = true, .info = info}, n.results[0]);
      return convert(values, {.info = info}, n.results[1]);
    }
    case Kind::kSvd: {
      // A matrix with more rows than columns is transposed to the library's order. The array of any other one is, read by
      // columns, its transpose A^T = U S V^H, so that A = (V^H)^T S U^T.
      const bool is_tall = m == f.rows && m != f.columns;
      const ValueId matrix = is_tall ? transposed(operands[0]) : copied(operands[0]);
      const ValueId values = temporary(graph_.type(n.results[0]).element, graph_.type(n.results[0]).dims);
      if (!f.vectors) {
        call({matrix}, {values, info});
        return convert(values, {.info = info}, n.results[0]);
      }
      // By columns: u has rows x (rows or columns), v has columns x columns.
      const ValueId u = temporary(a.element, dims_of({f.full ? f.rows : f.columns, f.rows}));
      const ValueId v = temporary(a.element, dims_of({f.columns, f.columns}));
      call({matrix}, {values, u, v, info});
      convert(values, {.info = info}, n.results[0]);
      convert(u, {.transposes = is_tall, .info = info}, n.results[is_tall ? 1 : 2]);
      return convert(v, {.transposes = !is_tall, .conjugates = true, .info = info}, n.results[is_tall ? 2 : 1]);
    }
  }
}

}  // namespace collet::codegen
