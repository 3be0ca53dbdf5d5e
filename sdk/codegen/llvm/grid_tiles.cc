// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/grid_emitter.h"
#include "sdk/codegen/llvm/scalar_ops.h"

namespace collet::codegen {
namespace {

constexpr int64_t kBlockDepth = 128;  ///< steps of the depth, a multiple of those of all kinds of rounds
constexpr int64_t kPieceBytes = 16;   ///< that a thread copies at a time
constexpr int64_t kStepsTogether = 4;
/// With so many sums of a thread, those of blocks of the depth leave registers for two blocks of a grid on a processor.
constexpr size_t kFewSums = 32;
constexpr unsigned kGlobalSpace = 1;

/// A matrix product by blocks that compute a tile each. In every round the block multiplies what shared memory has of both operands for
/// some steps of the depth, and adds the products to what its threads hold; meanwhile a later round is loaded. At the end the tile goes
/// through shared memory once more, so that neighbouring threads compute and store neighbouring results.
class TileEmitter final : public GridEmitter {
 public:
  TileEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : GridEmitter(kernel, module, target, function),
        tiles_(schedule_.tiles),
        type_(k_.reductions[0].types[0]),
        by_matrix_(tiles_.matrix_type != 0) {}

 private:
  /// An operand.
  struct Operand {
    TileOperand of;
    TileStorage storage;
    int64_t length = 0;        ///< rows, or columns, of a tile
    int64_t offset = 0;        ///< bytes in the memory of a round
    std::vector<bool> needed;  ///< expressions that its value follows from
  };
  void thread() override {
    element_ = ir_.scalar(type_);
    stored_ = by_matrix_ ? ir_.storage(tiles_.matrix_type) : element_;
    a_ = operand(tiles_.a, tiles_.tile_rows, 0);
    b_side_ = operand(tiles_.b, tiles_.tile_columns, a_.storage.bytes());
    round_bytes_ = b_side_.offset + b_side_.storage.bytes();
    const int64_t bytes = tiles_.rounds * round_bytes_;
    shared_ = shared_array(b_.getInt8Ty(), bytes);
    const int64_t tile_bytes =
        int64_t{tiles_.tile_rows} * tiles_.tile_columns * static_cast<int64_t>(element_->getScalarSizeInBits() / 8);
    while (tile_bytes / parts_ > bytes) parts_ *= 2;

    const int64_t held = int64_t{tiles_.tile_rows} * tiles_.tile_columns / schedule_.block_threads;
    for (int64_t i = 0; i < held; ++i) sums_.push_back(slot(element_));
    // The error of a sum grows with the terms that one accumulator takes: floats are added in blocks of the depth. Of factors that are
    // rounded to 11 bits or fewer, the products are not worth many registers.
    const bool in_blocks =
        element_->isFloatingPointTy() && tiles_.depth >= 2 * kBlockDepth && (!by_matrix_ || sums_.size() <= kFewSums);
    for (int64_t i = 0; i < held && in_blocks; ++i) totals_.push_back(slot(element_));

    loop(block_, number(tiles_.tiles()), schedule_.blocks, [&](Value* tile) {
      Value* const column_tile = b_.CreateURem(tile, number(tiles_.column_tiles()));
      Value* const above = b_.CreateUDiv(tile, number(tiles_.column_tiles()));
      set_loops(0, k_.outer, tiles_.batch, b_.CreateUDiv(above, number(tiles_.row_tiles())));
      first_row_ = b_.CreateMul(b_.CreateURem(above, number(tiles_.row_tiles())), number(tiles_.tile_rows));
      first_column_ = b_.CreateMul(column_tile, number(tiles_.tile_columns));
      clear(sums_);
      clear(totals_);
      all_rounds();
      if (!totals_.empty()) add_to_totals();
      for (int64_t part = 0; part < parts_; ++part) {
        barrier();
        put(part);
        barrier();
        results(part);
      }
      barrier();
    });
  }

  void clear(const std::vector<Value*>& sums) {
    for (Value* sum : sums) b_.CreateStore(llvm::Constant::getNullValue(element_), sum);
  }

  void add_to_totals() {
    for (size_t i = 0; i < sums_.size(); ++i) {
      Value* const sum = b_.CreateLoad(element_, sums_[i]);
      b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(element_, totals_[i]), sum), totals_[i]);
    }
  }

  Operand operand(const TileOperand& of, int64_t length, int64_t offset) {
    return {of, tile_storage(tiles_, of, static_cast<int>(length), type_), length, offset, needed_for({of.value})};
  }

  // Rounds.

  /// All rounds of a tile, with the next ones under way. Nobody writes where others may still read: what a round leaves free is filled
  /// after the barrier that begins the next one.
  void all_rounds() {
    const int64_t rounds = (tiles_.depth + tiles_.round - 1) / tiles_.round;
    const int64_t ahead = tiles_.rounds - 1;
    for (int64_t i = 0; i < ahead; ++i) {
      if (i < rounds) {
        begin_round(number(i));
        end_round(number(i));
      }
      commit();
    }
    loop(number(0), number(rounds), 1, [&](Value* round) {
      wait(ahead - 1);
      barrier();
      Value* const later = b_.CreateAdd(round, number(ahead));
      Value* const exists = b_.CreateICmpSLT(later, number(rounds));
      branch(exists, [&] { begin_round(later); });
      commit();
      multiply(round);
      if (!computed_.empty()) branch(exists, [&] { end_round(later); });
      if (totals_.empty()) return;
      const int64_t block = kBlockDepth / tiles_.round;
      Value* const at = b_.CreateURem(round, number(block));
      branch(b_.CreateICmpEQ(at, number(block - 1)), [&] {
        add_to_totals();
        clear(sums_);
      });
    });
  }

  /// Starts the copies of a round, and computes what is not copied, into registers.
  void begin_round(Value* round) {
    Value* const depth = b_.CreateMul(round, number(tiles_.round));
    size_t next = 0;
    for (const auto& [o, first] : operands()) {
      if (o->of.is_copied) {
        copy(*o, first, round, depth);
        continue;
      }
      for (int64_t i = 0; i < elements_of_thread(*o); ++i) {
        const auto [at, step] = point_of_thread(*o, i);
        Value* const x = element(*o, b_.CreateAdd(first, at), b_.CreateAdd(depth, step));
        if (next == computed_.size()) computed_.push_back(slot(stored_));
        b_.CreateStore(x, computed_[next++]);
      }
    }
  }

  /// Puts what was computed of a round into shared memory.
  void end_round(Value* round) {
    size_t next = 0;
    for (const auto& [o, first] : operands()) {
      for (int64_t i = 0; i < elements_of_thread(*o) && !o->of.is_copied; ++i) {
        const auto [at, step] = point_of_thread(*o, i);
        Value* const to = o->storage.lines_of_depth ? place(*o, round, step, at) : place(*o, round, at, step);
        b_.CreateStore(b_.CreateLoad(stored_, computed_[next++]), to);
      }
    }
  }

  /// The operands, and the first row or column of each.
  std::array<std::pair<const Operand*, Value*>, 2> operands() const {
    return {{{&a_, first_row_}, {&b_side_, first_column_}}};
  }

  int64_t elements_of_thread(const Operand& o) const { return o.length * tiles_.round / schedule_.block_threads; }

  /// The row (column) and the step of this thread's element `i`. Neighbouring threads have neighbours in memory.
  std::pair<Value*, Value*> point_of_thread(const Operand& o, int64_t i) {
    Value* const index = b_.CreateAdd(number(i * schedule_.block_threads), thread_);
    const int64_t fast = o.of.by_depth ? tiles_.round : o.length;
    Value* const low = b_.CreateURem(index, number(fast));
    Value* const high = b_.CreateUDiv(index, number(fast));
    return o.of.by_depth ? std::pair(high, low) : std::pair(low, high);
  }

  void commit() {
    if (tiles_.a.is_copied || tiles_.b.is_copied)
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
  }

  /// Waits for this thread's copies, but for those of the last `later` rounds.
  void wait(int64_t later) {
    if (tiles_.a.is_copied || tiles_.b.is_copied)
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {}, {b_.getInt32(static_cast<uint32_t>(later))});
  }

  /// Where an element lies: `line` and `x` are numbers of its line and within it.
  Value* place(const Operand& o, Value* round, Value* line, Value* x) {
    Value* const slot_of_round = b_.CreateURem(round, number(tiles_.rounds));
    Value* const at = b_.CreateAdd(b_.CreateMul(slot_of_round, number(round_bytes_)), number(o.offset));
    Value* const base = b_.CreateGEP(b_.getInt8Ty(), shared_, at);
    return b_.CreateGEP(stored_, base, b_.CreateAdd(b_.CreateMul(line, number(o.storage.pitch)), x));
  }

  /// The operand at a point. Beyond the depth it is 0. Beyond its rows, or columns, it is anything: nobody stores what follows from it.
  Value* element(const Operand& o, Value* at, Value* step) {
    set_loops(0, k_.outer, o.of.loops, at_most(at, o.of.count - 1));
    set_loops(k_.outer, k_.loops.size(), ~uint64_t{0}, at_most(step, tiles_.depth - 1));
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (o.needed[k]) vals_[k] = instruction(k_.exprs[k]);
    }
    const Val& v = val(o.of.value);
    Value* const x = by_matrix_ ? ir_.to_storage(v, tiles_.matrix_type) : v.v;
    Value* const inside = b_.CreateICmpULT(step, number(tiles_.depth));
    return b_.CreateSelect(inside, x, llvm::Constant::getNullValue(x->getType()));
  }

  Value* at_most(Value* x, int64_t last) { return ir_.binary(llvm::Intrinsic::smin, x, number(last)); }

  /// Starts the copies of an operand's pieces in a round. Beyond the depth they are 0.
  void copy(const Operand& o, Value* first, Value* round, Value* depth) {
    const int64_t piece = kPieceBytes / o.storage.element_bytes;
    const int64_t pieces_of_line = (o.storage.lines_of_depth ? o.length : tiles_.round) / piece;
    const int64_t all = o.storage.lines * pieces_of_line;
    const Expr& e = k_.exprs[static_cast<size_t>(o.of.value)];
    for (int64_t i = 0; i < all; i += schedule_.block_threads) {
      Value* const index = b_.CreateAdd(number(i), thread_);
      const auto one = [&] {
        Value* const line = b_.CreateUDiv(index, number(pieces_of_line));
        Value* const x = b_.CreateMul(b_.CreateURem(index, number(pieces_of_line)), number(piece));
        Value* const at = b_.CreateAdd(first, o.storage.lines_of_depth ? x : line);
        Value* const step = b_.CreateAdd(depth, o.storage.lines_of_depth ? line : x);
        set_loops(0, k_.outer, o.of.loops, at_most(at, o.of.count - (o.storage.lines_of_depth ? piece : 1)));
        Value* const to = place(o, round, line, x);
        const auto copied = [&] {
          set_loops(k_.outer, k_.loops.size(), ~uint64_t{0}, step);
          Value* const from = b_.CreateGEP(stored_, bases_[e.buffer], lanes(e.index).scalar);
          b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {},
                             {to, b_.CreateAddrSpaceCast(from, llvm::PointerType::get(ir_.context(), kGlobalSpace))});
        };
        if (tiles_.depth % tiles_.round == 0) return copied();
        Value* const inside = b_.CreateICmpULT(step, number(tiles_.depth));
        branch(inside, copied);
        Type* const words = llvm::FixedVectorType::get(b_.getInt32Ty(), kPieceBytes / 4);
        branch(b_.CreateNot(inside),
               [&] { b_.CreateAlignedStore(llvm::Constant::getNullValue(words), to, llvm::Align(kPieceBytes)); });
      };
      i + schedule_.block_threads <= all ? one() : branch(b_.CreateICmpULT(index, number(all)), one);
    }
  }

  void multiply(Value* round) { by_matrix_ ? multiply_matrices(round) : multiply_plain(round); }

  // Without matrix instructions a thread has part_rows x part_columns of the tile, in groups of kGroup rows and columns that lie
  // apart: so that the threads of a warp read what lies side by side.

  static constexpr int64_t kGroup = 4;

  int64_t row_groups() const { return tiles_.part_rows / kGroup; }
  int64_t column_groups() const { return tiles_.part_columns / kGroup; }
  /// The first row of this thread's group `g`.
  Value* group_row(int64_t g) {
    Value* const own = b_.CreateUDiv(thread_, number(tiles_.tile_columns / tiles_.part_columns));
    return b_.CreateAdd(b_.CreateMul(own, number(kGroup)), number(g * (tiles_.tile_rows / row_groups())));
  }
  Value* group_column(int64_t g) {
    Value* const own = b_.CreateURem(thread_, number(tiles_.tile_columns / tiles_.part_columns));
    return b_.CreateAdd(b_.CreateMul(own, number(kGroup)), number(g * (tiles_.tile_columns / column_groups())));
  }
  Value* plain_sum(int64_t row, int64_t column) {
    return sums_[static_cast<size_t>(row * tiles_.part_columns + column)];
  }

  void multiply_plain(Value* round) {
    const bool is_float = element_->isFloatingPointTy();
    const Contraction contraction(ir_, is_float && (k_.reductions[0].contract || type_ == COLLET_TYPE_F32));
    std::vector<Value*> rows;
    std::vector<Value*> columns;
    for (int64_t g = 0; g < row_groups(); ++g) rows.push_back(group_row(g));
    for (int64_t g = 0; g < column_groups(); ++g) columns.push_back(group_column(g));
    loop(number(0), number(tiles_.round), kStepsTogether, [&](Value* base) {
      for (int64_t i = 0; i < kStepsTogether; ++i) {
        Value* const step = b_.CreateAdd(base, number(i));
        const std::vector<Value*> x = line_of(a_, round, rows, step);
        const std::vector<Value*> y = line_of(b_side_, round, columns, step);
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

  /// The elements of a step of the depth, kGroup of them from each place on.
  std::vector<Value*> line_of(const Operand& o, Value* round, const std::vector<Value*>& at, Value* step) {
    Type* const t = llvm::FixedVectorType::get(element_, kGroup);
    std::vector<Value*> out;
    for (Value* first : at) {
      Value* const group = b_.CreateAlignedLoad(t, place(o, round, step, first), llvm::Align(16));
      for (uint64_t i = 0; i < kGroup; ++i) out.push_back(b_.CreateExtractElement(group, i));
    }
    return out;
  }

  // With matrix instructions a warp has part_rows x part_columns of the tile, in products of 16 x 8. Which thread has which element is
  // fixed by mma.m16n8k* (PTX ISA, "Matrix Fragments"): the same for all types in words of 32 bits along the depth, of which each
  // instruction takes eight.

  static constexpr int64_t kRows = 16, kColumns = 8, kWords = 8;

  int64_t row_blocks() const { return tiles_.part_rows / kRows; }
  int64_t column_blocks() const { return tiles_.part_columns / kColumns; }
  Value* lane() { return b_.CreateURem(thread_, number(warp_)); }
  Value* warp_row() {
    Value* const warp = b_.CreateUDiv(thread_, number(warp_));
    return b_.CreateMul(b_.CreateUDiv(warp, number(tiles_.tile_columns / tiles_.part_columns)),
                        number(tiles_.part_rows));
  }
  Value* warp_column() {
    Value* const warp = b_.CreateUDiv(thread_, number(warp_));
    return b_.CreateMul(b_.CreateURem(warp, number(tiles_.tile_columns / tiles_.part_columns)),
                        number(tiles_.part_columns));
  }
  Value* matrix_sum(int64_t row_block, int64_t column_block, int64_t i) {
    return sums_[static_cast<size_t>((row_block * column_blocks() + column_block) * 4 + i)];
  }

  /// Four matrices of eight rows (columns) and four words along the depth: those of `at` and of the eight behind it, from step `step`
  /// and from the four words behind that. Which comes second is told by `depth_first`.
  std::vector<Value*> load_matrices(const Operand& o, Value* round, Value* at, int64_t step, bool depth_first) {
    const int64_t words_of_step = 4 / o.storage.element_bytes;  // elements in a word
    Value* const in_matrix = b_.CreateAnd(lane(), number(7));
    Value* const odd = b_.CreateAnd(b_.CreateLShr(lane(), number(3)), number(1));
    Value* const high = b_.CreateLShr(lane(), number(4));
    Value* const by_depth = depth_first ? odd : high;
    Value* const by_row = b_.CreateMul(depth_first ? high : odd, number(8));
    Value* const steps = b_.CreateAdd(b_.CreateMul(by_depth, number(4 * words_of_step)), number(step));
    Value* const rows = b_.CreateAdd(at, by_row);
    // Each thread tells where a line of a matrix begins: of a row, or, turned over while it is loaded, of a step.
    Value* const line = b_.CreateAdd(o.storage.lines_of_depth ? steps : rows, in_matrix);
    Value* const from = place(o, round, line, o.storage.lines_of_depth ? rows : steps);
    const auto id = o.storage.lines_of_depth ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                             : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16;
    Value* const all = b_.CreateIntrinsic(id, {from->getType()}, {from});
    std::vector<Value*> out;
    for (unsigned i = 0; i < 4; ++i) out.push_back(factor(b_.CreateExtractValue(all, {i})));
    return out;
  }

  /// A word as the instruction takes it.
  Value* factor(Value* word) {
    if (tiles_.matrix_type == COLLET_TYPE_F16)
      return b_.CreateBitCast(word, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
    if (tiles_.matrix_type != COLLET_TYPE_F32) return word;
    llvm::InlineAsm* const round = llvm::InlineAsm::get(
        llvm::FunctionType::get(b_.getInt32Ty(), {b_.getInt32Ty()}, false), "cvt.rna.tf32.f32 $0, $1;", "=r,r", false);
    return b_.CreateCall(round, {word});
  }

  llvm::Intrinsic::ID matrix_instruction() const {
    switch (tiles_.matrix_type) {
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

  void multiply_matrices(Value* round) {
    Value* const row = warp_row();
    Value* const column = warp_column();
    const int64_t steps = kWords * 4 / a_.storage.element_bytes;
    for (int64_t step = 0; step < tiles_.round; step += steps) {
      std::vector<std::vector<Value*>> x;
      for (int64_t r = 0; r < row_blocks(); ++r)
        x.push_back(load_matrices(a_, round, b_.CreateAdd(row, number(r * kRows)), step, false));
      for (int64_t c = 0; c < column_blocks(); c += 2) {
        const std::vector<Value*> y =
            load_matrices(b_side_, round, b_.CreateAdd(column, number(c * kColumns)), step, true);
        for (int64_t r = 0; r < row_blocks(); ++r) {
          matrix_product(x[static_cast<size_t>(r)], y[0], y[1], r, c);
          matrix_product(x[static_cast<size_t>(r)], y[2], y[3], r, c + 1);
        }
      }
    }
  }

  void matrix_product(const std::vector<Value*>& x, Value* y0, Value* y1, int64_t row_block, int64_t column_block) {
    std::vector<Value*> args = x;
    args.insert(args.end(), {y0, y1});
    for (int64_t i = 0; i < 4; ++i) args.push_back(b_.CreateLoad(element_, matrix_sum(row_block, column_block, i)));
    Value* const product = b_.CreateIntrinsic(matrix_instruction(), {}, args);
    for (int64_t i = 0; i < 4; ++i)
      b_.CreateStore(b_.CreateExtractValue(product, {static_cast<unsigned>(i)}),
                     matrix_sum(row_block, column_block, i));
  }

  // Results, in parts_ parts. A part has the rows of some groups, or blocks, of every thread.

  int64_t row_units() const { return by_matrix_ ? row_blocks() : tiles_.part_rows; }
  int64_t rows_of_part() const { return tiles_.tile_rows / parts_; }

  void put(int64_t part) {
    const int64_t units = row_units() / parts_;
    for (int64_t u = 0; u < units; ++u) by_matrix_ ? put_block(part * units + u, u) : put_row(part * units + u, u);
  }

  /// The number in its part of the row that is `row`-th of the tile where there is one part: rows are taken from all threads alike.
  void put_one(Value* row, Value* column, Value* slot_of_sum) {
    Value* const sum = b_.CreateLoad(element_, slot_of_sum);
    Value* const at = b_.CreateAdd(b_.CreateMul(row, number(tiles_.tile_columns)), column);
    b_.CreateStore(sum, b_.CreateGEP(element_, shared_, at));
  }

  void put_row(int64_t own, int64_t in_part) {
    // Rows of a part: by group, then by thread, then within the group.
    const int64_t threads = tiles_.tile_rows / tiles_.part_rows;
    Value* const thread_row = b_.CreateUDiv(thread_, number(tiles_.tile_columns / tiles_.part_columns));
    Value* const row = b_.CreateAdd(b_.CreateMul(thread_row, number(kGroup)),
                                    number(in_part / kGroup * threads * kGroup + in_part % kGroup));
    for (int64_t c = 0; c < tiles_.part_columns; ++c)
      put_one(row, b_.CreateAdd(group_column(c / kGroup), number(c % kGroup)), held(plain_sum(own, c)));
  }

  void put_block(int64_t own, int64_t in_part) {
    // Rows of a part: by warp, then by block, then within the block.
    const int64_t units = row_units() / parts_;
    Value* const warps = b_.CreateUDiv(warp_row(), number(tiles_.part_rows));
    Value* const in_block = b_.CreateUDiv(lane(), number(4));
    Value* const pair = b_.CreateMul(b_.CreateURem(lane(), number(4)), number(2));
    Value* const first = b_.CreateAdd(b_.CreateMul(warps, number(units * kRows)), number(in_part * kRows));
    for (int64_t c = 0; c < column_blocks(); ++c) {
      for (int64_t i = 0; i < 4; ++i) {
        Value* const row = b_.CreateAdd(b_.CreateAdd(first, in_block), number(i / 2 * 8));
        Value* const column = b_.CreateAdd(b_.CreateAdd(warp_column(), pair), number(c * kColumns + i % 2));
        put_one(row, column, held(matrix_sum(own, c, i)));
      }
    }
  }

  /// Where the sum of all blocks of the depth is.
  Value* held(Value* sum) {
    if (totals_.empty()) return sum;
    return totals_[static_cast<size_t>(std::find(sums_.begin(), sums_.end(), sum) - sums_.begin())];
  }

  /// The row of the tile that is number `row` of a part.
  Value* row_of_tile(int64_t part, Value* row) {
    if (parts_ == 1) return row;
    if (!by_matrix_) return b_.CreateAdd(row, number(part * rows_of_part()));
    const int64_t rows = tiles_.part_rows / parts_;  // of a warp, in a part
    Value* const of_warp = b_.CreateMul(b_.CreateUDiv(row, number(rows)), number(tiles_.part_rows));
    return b_.CreateAdd(b_.CreateAdd(of_warp, b_.CreateURem(row, number(rows))), number(part * rows));
  }

  /// What is done with each element of a part of the tile.
  void results(int64_t part) {
    loop(thread_, number(rows_of_part() * tiles_.tile_columns), schedule_.block_threads, [&](Value* i) {
      Value* const row_of_part = b_.CreateUDiv(i, number(tiles_.tile_columns));
      Value* const row = b_.CreateAdd(first_row_, row_of_tile(part, row_of_part));
      Value* const column = b_.CreateAdd(first_column_, b_.CreateURem(i, number(tiles_.tile_columns)));
      Value* inside = b_.CreateICmpULT(row, number(tiles_.a.count));
      inside = b_.CreateAnd(inside, b_.CreateICmpULT(column, number(tiles_.b.count)));
      branch(inside, [&] {
        set_loops(0, k_.outer, tiles_.a.loops, row);
        set_loops(0, k_.outer, tiles_.b.loops, column);
        values_of_stage(0);
        finish_fold(0, {{b_.CreateLoad(element_, b_.CreateGEP(element_, shared_, i))}});
        values_of_stage(1);
        for (const Store& s : k_.stores) store(s);
      });
    });
  }

  void values_of_stage(int stage) {
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const auto id = static_cast<ExprId>(k);
      if (passes_.level_of(id) <= k_.outer && passes_.stage_of(id) == stage && k_.exprs[k].op != ExprOp::kReduced)
        vals_[k] = instruction(k_.exprs[k]);
    }
  }

  const TileSchedule& tiles_;
  const uint32_t type_;
  const bool by_matrix_;
  Type* element_ = nullptr;  ///< in which products are added
  Type* stored_ = nullptr;   ///< of operands in shared memory
  Operand a_, b_side_;
  int64_t round_bytes_ = 0;
  int64_t parts_ = 1;             ///< of the tile, in which it goes through shared memory
  Value* shared_ = nullptr;       ///< rounds of operands, then a part of the tile
  std::vector<Value*> computed_;  ///< this thread's elements of a round, until shared memory is free for them
  std::vector<Value*> sums_;
  std::vector<Value*> totals_;  ///< of the blocks of the depth before; empty where there are no blocks
  Value* first_row_ = nullptr;
  Value* first_column_ = nullptr;
};

}  // namespace

void emit_grid_tiles(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function) {
  TileEmitter(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
