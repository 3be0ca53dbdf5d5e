// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/product/block_product.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

namespace collet::codegen {

BlockProduct::BlockProduct(Ir& ir, const TileShape& shape, uint32_t matrix_type, uint32_t sum_type, bool contracts,
                           Value* thread, const std::function<Value*(llvm::Type*)>& slot)
    : ir_(ir),
      b_(ir.b),
      shape_(shape),
      matrix_type_(matrix_type),
      by_matrix_(matrix_type != 0),
      contracts_(contracts),
      thread_(thread),
      element_(ir.scalar(sum_type)),
      stored_(by_matrix_ ? ir.storage(matrix_type) : element_) {
  const int64_t held = int64_t{shape.rows} * shape.columns / shape.threads(matrix_type);
  for (int64_t i = 0; i < held; ++i) sums_.push_back(slot(element_));
}

void BlockProduct::clear() {
  for (Value* sum : sums_) b_.CreateStore(llvm::Constant::getNullValue(element_), sum);
}

void BlockProduct::multiply(const Factor& a, const Factor& b, int64_t depth) {
  by_matrix_ ? multiply_matrices(a, b, depth) : multiply_plain(a, b, depth);
}

llvm::Value* BlockProduct::place(const Factor& f, Value* line, Value* x) {
  return b_.CreateGEP(stored_, f.base, b_.CreateAdd(b_.CreateMul(line, number(f.storage.pitch)), x));
}

// Products without matrix instructions.

/// Returns the first row of group `g` of this thread.
llvm::Value* BlockProduct::group_row(int64_t g) {
  Value* const own = b_.CreateUDiv(thread_, number(shape_.columns / shape_.part_columns));
  return b_.CreateAdd(b_.CreateMul(own, number(kGroup)), number(g * (shape_.rows / row_groups())));
}

llvm::Value* BlockProduct::group_column(int64_t g) {
  Value* const own = b_.CreateURem(thread_, number(shape_.columns / shape_.part_columns));
  return b_.CreateAdd(b_.CreateMul(own, number(kGroup)), number(g * (shape_.columns / column_groups())));
}

void BlockProduct::multiply_plain(const Factor& a, const Factor& b, int64_t depth) {
  const bool is_float = element_->isFloatingPointTy();
  const Contraction contraction(ir_, is_float && contracts_);
  std::vector<Value*> rows;
  std::vector<Value*> columns;
  for (int64_t g = 0; g < row_groups(); ++g) rows.push_back(group_row(g));
  for (int64_t g = 0; g < column_groups(); ++g) columns.push_back(group_column(g));
  ir_.loop(number(0), number(depth), number(kStepsTogether), [&](Value* base) {
    for (int64_t i = 0; i < kStepsTogether; ++i) {
      Value* const step = b_.CreateAdd(base, number(i));
      const std::vector<Value*> x = line_of(a, rows, step);
      const std::vector<Value*> y = line_of(b, columns, step);
      for (size_t r = 0; r < x.size(); ++r) {
        for (size_t c = 0; c < y.size(); ++c) {
          Value* const sum = plain_sum(static_cast<int64_t>(r), static_cast<int64_t>(c));
          Value* const old = b_.CreateLoad(element_, sum);
          b_.CreateStore(
              is_float ? b_.CreateFAdd(old, b_.CreateFMul(x[r], y[c])) : b_.CreateAdd(old, b_.CreateMul(x[r], y[c])),
              sum);
        }
      }
    }
  });
}

/// Loads the elements of one step of the depth: kGroup elements from each position in `at`.
std::vector<llvm::Value*> BlockProduct::line_of(const Factor& f, const std::vector<Value*>& at, Value* step) {
  llvm::Type* const t = llvm::FixedVectorType::get(element_, kGroup);
  std::vector<Value*> out;
  for (Value* first : at) {
    Value* const group = b_.CreateAlignedLoad(t, place(f, step, first), llvm::Align(16));
    for (uint64_t i = 0; i < kGroup; ++i) out.push_back(b_.CreateExtractElement(group, i));
  }
  return out;
}

// Products with matrix instructions.

llvm::Value* BlockProduct::lane() {
  return b_.CreateURem(thread_, number(TileShape::kWarp));
}

llvm::Value* BlockProduct::warp_row() {
  Value* const warp = b_.CreateUDiv(thread_, number(TileShape::kWarp));
  return b_.CreateMul(b_.CreateUDiv(warp, number(shape_.columns / shape_.part_columns)), number(shape_.part_rows));
}

llvm::Value* BlockProduct::warp_column() {
  Value* const warp = b_.CreateUDiv(thread_, number(TileShape::kWarp));
  return b_.CreateMul(b_.CreateURem(warp, number(shape_.columns / shape_.part_columns)), number(shape_.part_columns));
}

void BlockProduct::multiply_matrices(const Factor& a, const Factor& b, int64_t depth) {
  Value* const row = warp_row();
  Value* const column = warp_column();
  const int64_t steps = kWords * 4 / a.storage.element_bytes;
  for (int64_t step = 0; step < depth; step += steps) {
    std::vector<std::vector<Value*>> x;
    for (int64_t r = 0; r < row_blocks(); ++r)
      x.push_back(load_matrices(a, b_.CreateAdd(row, number(r * kRows)), step, false));
    for (int64_t c = 0; c < column_blocks(); c += 2) {
      const std::vector<Value*> y = load_matrices(b, b_.CreateAdd(column, number(c * kColumns)), step, true);
      for (int64_t r = 0; r < row_blocks(); ++r) {
        matrix_product(x[static_cast<size_t>(r)], y[0], y[1], r, c);
        matrix_product(x[static_cast<size_t>(r)], y[2], y[3], r, c + 1);
      }
    }
  }
}

/// Loads four 8 x 4 matrices of 32-bit words with one ldmatrix instruction: eight rows (or columns of b) from `at` and
/// the next eight, each with four words of the depth from `step` and the next four. `depth_first` selects which of the
/// two dimensions the second matrix advances in.
std::vector<llvm::Value*> BlockProduct::load_matrices(const Factor& f, Value* at, int64_t step, bool depth_first) {
  const int64_t elements_of_word = 4 / f.storage.element_bytes;
  Value* const in_matrix = b_.CreateAnd(lane(), number(7));
  Value* const odd = b_.CreateAnd(b_.CreateLShr(lane(), number(3)), number(1));
  Value* const high = b_.CreateLShr(lane(), number(4));
  Value* const by_depth = depth_first ? odd : high;
  Value* const by_row = b_.CreateMul(depth_first ? high : odd, number(8));
  Value* const steps = b_.CreateAdd(b_.CreateMul(by_depth, number(4 * elements_of_word)), number(step));
  Value* const rows = b_.CreateAdd(at, by_row);
  // Each thread passes the address of one line of a matrix: a row or, if the matrix is transposed while it is loaded, a
  // step of the depth.
  const bool transposes = f.storage.lines_of_depth;
  Value* const line = b_.CreateAdd(transposes ? steps : rows, in_matrix);
  Value* const from = place(f, line, transposes ? rows : steps);
  const auto id = transposes ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                             : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16;
  Value* const all = b_.CreateIntrinsic(id, {from->getType()}, {from});
  std::vector<Value*> out;
  for (unsigned i = 0; i < 4; ++i) out.push_back(factor_of(b_.CreateExtractValue(all, {i})));
  return out;
}

/// Returns a word in the type that the matrix instruction expects.
llvm::Value* BlockProduct::factor_of(Value* word) {
  if (matrix_type_ == COLLET_TYPE_F16) return b_.CreateBitCast(word, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
  if (matrix_type_ != COLLET_TYPE_F32) return word;
  llvm::InlineAsm* const round = llvm::InlineAsm::get(
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getInt32Ty()}, false), "cvt.rna.tf32.f32 $0, $1;", "=r,r", false);
  return b_.CreateCall(round, {word});
}

llvm::Intrinsic::ID BlockProduct::matrix_instruction() const {
  switch (matrix_type_) {
    case COLLET_TYPE_BF16:
      return llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16;
    case COLLET_TYPE_F16:
      return llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
    case COLLET_TYPE_S8:
      return llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_s8;
    case COLLET_TYPE_U8:
      return llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8;
    default:
      return llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
  }
}

void BlockProduct::matrix_product(const std::vector<Value*>& x, Value* y0, Value* y1, int64_t row_block,
                                  int64_t column_block) {
  std::vector<Value*> args = x;
  args.insert(args.end(), {y0, y1});
  for (int64_t i = 0; i < 4; ++i) args.push_back(b_.CreateLoad(element_, matrix_sum(row_block, column_block, i)));
  Value* const product = b_.CreateIntrinsic(matrix_instruction(), {}, args);
  for (int64_t i = 0; i < 4; ++i)
    b_.CreateStore(b_.CreateExtractValue(product, {static_cast<unsigned>(i)}), matrix_sum(row_block, column_block, i));
}

// Positions of the sums in the result.

std::vector<BlockProduct::Held> BlockProduct::held(int64_t part, int64_t parts) {
  std::vector<Held> out;
  const int64_t units = row_units() / parts;
  for (int64_t u = 0; u < units; ++u) {
    const int64_t own = part * units + u;
    if (!by_matrix_) {
      // The rows of a part are numbered by group, then by thread, then within the group.
      const int64_t threads = shape_.rows / shape_.part_rows;
      Value* const thread_row = b_.CreateUDiv(thread_, number(shape_.columns / shape_.part_columns));
      Value* const row =
          b_.CreateAdd(b_.CreateMul(thread_row, number(kGroup)), number(u / kGroup * threads * kGroup + u % kGroup));
      for (int64_t c = 0; c < shape_.part_columns; ++c)
        out.push_back({row, b_.CreateAdd(group_column(c / kGroup), number(c % kGroup)), plain_sum(own, c)});
      continue;
    }
    // The rows of a part are numbered by warp, then by block, then within the block.
    Value* const warps = b_.CreateUDiv(warp_row(), number(shape_.part_rows));
    Value* const in_block = b_.CreateUDiv(lane(), number(4));
    Value* const pair = b_.CreateMul(b_.CreateURem(lane(), number(4)), number(2));
    Value* const first = b_.CreateAdd(b_.CreateMul(warps, number(units * kRows)), number(u * kRows));
    for (int64_t c = 0; c < column_blocks(); ++c) {
      for (int64_t i = 0; i < 4; ++i) {
        Value* const row = b_.CreateAdd(b_.CreateAdd(first, in_block), number(i / 2 * 8));
        Value* const column = b_.CreateAdd(b_.CreateAdd(warp_column(), pair), number(c * kColumns + i % 2));
        out.push_back({row, column, matrix_sum(own, c, i)});
      }
    }
  }
  return out;
}

llvm::Value* BlockProduct::row_of_product(int64_t part, int64_t parts, Value* row) {
  if (parts == 1) return row;
  if (!by_matrix_) return b_.CreateAdd(row, number(part * shape_.rows / parts));
  const int64_t rows = shape_.part_rows / parts;  // rows of a warp in a part
  Value* const of_warp = b_.CreateMul(b_.CreateUDiv(row, number(rows)), number(shape_.part_rows));
  return b_.CreateAdd(b_.CreateAdd(of_warp, b_.CreateURem(row, number(rows))), number(part * rows));
}

}  // namespace collet::codegen
