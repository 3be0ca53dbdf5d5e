// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_radix.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>
#include <functional>
#include <vector>

#include "sdk/codegen/llvm/grid/grid_function.h"
#include "sdk/codegen/llvm/ir.h"
#include "sdk/codegen/routines/sort_keys.h"

namespace collet::codegen {
namespace {

using llvm::Value;

constexpr uint32_t kWarp = 32;
constexpr uint32_t kDigits = GridRadix::kDigits;
/// Predecessors whose counts a thread reads at a time when it looks back: the reads overlap.
constexpr int kLookback = 8;

/// Emits one kernel of a radix sort as the program of a thread.
///
/// The elements of a tile are numbered so that item i of a thread is element 32 * items * warp + 32 * i + lane: accesses of a
/// warp are contiguous, and in a warp the order of elements is that of items, then lanes. To rank them, a warp takes
/// one item of each lane at a time. The lanes with the same digit find each other by ballots, and one of them adds their
/// number to the warp's count of the digit, which the block has in shared memory for each warp.
class RadixEmitter {
 public:
  RadixEmitter(const GridRadix& radix, llvm::Module& module, const Target& target, llvm::Function* function)
      : r_(radix),
        keys_(key_constants(radix.key)),
        ir_(module, target),
        b_(ir_.b),
        function_(function),
        i32_(b_.getInt32Ty()),
        i64_(b_.getInt64Ty()),
        key_type_(b_.getIntNTy(static_cast<unsigned>(8 * radix.key_bytes()))),
        threads_(radix.block_threads),
        warps_(radix.block_threads / kWarp),
        items_(static_cast<uint32_t>(radix.items)) {}

  void emit() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.context(), "entry", function_));
    thread_ = b_.CreateTrunc(emit_thread_number(b_), i32_);
    block_ = b_.CreateTrunc(emit_block_number(b_), i32_);
    lane_ = b_.CreateAnd(thread_, number(kWarp - 1));
    warp_ = b_.CreateLShr(thread_, number(5));
    switch (r_.part) {
      case GridRadix::Part::kRows:
        rows();
        break;
      case GridRadix::Part::kSelect:
        select();
        break;
      case GridRadix::Part::kCounts:
        counts();
        break;
      case GridRadix::Part::kPass:
        pass();
        break;
    }
    b_.CreateRetVoid();
  }

 private:
  using Values = std::vector<Value*>;

  Value* number(uint64_t x) { return b_.getInt32(static_cast<uint32_t>(x)); }
  Value* wide(Value* x) { return b_.CreateZExt(x, i64_); }
  Value* argument(size_t i) { return function_->getArg(static_cast<unsigned>(i)); }
  Value* minimum(Value* x, Value* y) { return ir_.binary(llvm::Intrinsic::umin, x, y); }
  llvm::Type* integer(int64_t bytes) { return b_.getIntNTy(static_cast<unsigned>(8 * bytes)); }
  void barrier() { emit_barrier(b_); }
  void branch(Value* condition, const std::function<void()>& body) { ir_.branch(condition, body); }
  /// Returns memory of the thread, which becomes a register.
  Value* slot(llvm::Type* type) {
    llvm::IRBuilder<> begin(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    return begin.CreateAlloca(type);
  }
  Value* shared_words(uint32_t words) { return make_shared_array(function_, i32_, words); }
  Value* word(Value* base, Value* at) { return b_.CreateGEP(i32_, base, at); }
  Value* load_word(Value* base, Value* at) { return b_.CreateLoad(i32_, word(base, at)); }
  void store_word(Value* base, Value* at, Value* x) { b_.CreateStore(x, word(base, at)); }
  Value* add_atomically(Value* address, Value* x) {
    return b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, address, x, llvm::MaybeAlign(4),
                              llvm::AtomicOrdering::Monotonic);
  }

  Value* load(llvm::Type* type, Value* base, Value* at) {
    return b_.CreateAlignedLoad(type, b_.CreateGEP(type, base, at), llvm::Align(type->getIntegerBitWidth() / 8));
  }
  void store(Value* base, Value* at, Value* x) {
    llvm::Type* const type = x->getType();
    b_.CreateAlignedStore(x, b_.CreateGEP(type, base, at), llvm::Align(type->getIntegerBitWidth() / 8));
  }

  // Keys.

  /// Returns the key of an element: Keys::key.
  Value* key(Value* bits) {
    const auto constant = [&](uint64_t x) { return llvm::ConstantInt::get(key_type_, x); };
    if (keys_.equal_zeros) bits = b_.CreateSelect(b_.CreateICmpEQ(bits, constant(keys_.sign)), constant(0), bits);
    if (keys_.equal_nans) {
      Value* const magnitude = b_.CreateAnd(bits, constant(keys_.sign - 1));
      bits = b_.CreateSelect(b_.CreateICmpUGT(magnitude, constant(keys_.infinity)), constant(keys_.sign - 1), bits);
    }
    if (keys_.is_float) {
      Value* const negative = b_.CreateAShr(bits, constant(static_cast<uint64_t>(8 * r_.key_bytes() - 1)));
      bits = b_.CreateXor(bits, b_.CreateOr(negative, constant(keys_.sign)));
    }
    return b_.CreateXor(bits, constant(keys_.flip));
  }

  /// Returns the digit of a key at bit `shift`, an i32.
  Value* digit_of(Value* key, Value* shift) {
    if (r_.key_bytes() > 1) key = b_.CreateLShr(key, b_.CreateZExtOrTrunc(shift, key_type_));
    return b_.CreateAnd(b_.CreateZExtOrTrunc(key, i32_), number(kDigits - 1));
  }

  // Counting.

  void counts() {
    const auto passes = static_cast<uint32_t>(r_.passes);
    // Several copies of the counts, so that lanes with the same digit seldom wait for each other.
    const uint32_t words = passes * kDigits;
    const uint32_t copies = std::bit_floor(static_cast<uint32_t>(GridRadix::kCountedBytes / 4 / words));
    constexpr int kUnrolled = 8;
    Value* const counted = shared_words(words * copies);
    each(words * copies, [&](Value* at) { store_word(counted, at, number(0)); });
    barrier();
    const int64_t parts = (r_.length + r_.counted - 1) / r_.counted;
    Value* const row = b_.CreateUDiv(block_, number(static_cast<uint64_t>(parts)));
    Value* const part = b_.CreateURem(block_, number(static_cast<uint64_t>(parts)));
    Value* const begin = b_.CreateMul(wide(part), b_.getInt64(static_cast<uint64_t>(r_.counted)));
    const auto length = b_.getInt64(static_cast<uint64_t>(r_.length));
    Value* const end = minimum(b_.CreateAdd(begin, b_.getInt64(static_cast<uint64_t>(r_.counted))), length);
    Value* const from = b_.CreateGEP(key_type_, argument(0), b_.CreateMul(wide(row), length));
    Value* const last = b_.CreateSub(end, b_.getInt64(1));
    Value* const own_copy = b_.CreateAnd(lane_, number(copies - 1));
    ir_.loop(b_.CreateAdd(begin, wide(thread_)), end, b_.getInt64(uint64_t{threads_} * kUnrolled), [&](Value* first) {
      Values at;
      Values elements;
      for (int i = 0; i < kUnrolled; ++i) {
        at.push_back(b_.CreateAdd(first, b_.getInt64(static_cast<uint64_t>(i) * threads_)));
        elements.push_back(load(key_type_, from, minimum(at.back(), last)));
      }
      for (size_t i = 0; i < at.size(); ++i) {
        branch(b_.CreateICmpULT(at[i], end), [&] {
          Value* const k = key(elements[i]);
          for (uint32_t p = 0; p < passes; ++p) {
            Value* const count = b_.CreateAdd(number(p * kDigits), digit_of(k, number(8 * p)));
            add_atomically(word(counted, b_.CreateAdd(b_.CreateMul(count, number(copies)), own_copy)), number(1));
          }
        });
      }
    });
    barrier();
    Value* const of_row = word(
        argument(1), b_.CreateAdd(b_.getInt64(GridRadix::kFirstCount), b_.CreateMul(wide(row), b_.getInt64(words))));
    each(words, [&](Value* at) {
      Value* sum = number(0);
      for (uint32_t c = 0; c < copies; ++c) {
        // The threads of a warp read different copies, which are in different memory banks.
        Value* const turn = b_.CreateUDiv(thread_, number(kWarp / copies));
        Value* const copy = b_.CreateAnd(b_.CreateAdd(number(c), turn), number(copies - 1));
        sum = b_.CreateAdd(sum, load_word(counted, b_.CreateAdd(b_.CreateMul(at, number(copies)), copy)));
      }
      branch(b_.CreateICmpNE(sum, number(0)), [&] { add_atomically(word(of_row, at), sum); });
    });
  }

  /// Calls `body` for the numbers below `n` that are this thread's share.
  void each(uint32_t n, const std::function<void(Value*)>& body) {
    if (n % threads_ == 0 && n / threads_ <= 16) {
      for (uint32_t i = 0; i < n; i += threads_) body(b_.CreateAdd(thread_, number(i)));
    } else {
      ir_.loop(wide(thread_), b_.getInt64(n), b_.getInt64(threads_),
               [&](Value* at) { body(b_.CreateTrunc(at, i32_)); });
    }
  }

  // Ranking.

  // The place of item i in the tile is that of the first item plus 32 * i. Addresses are computed for the first item alone,
  // so that the others are at constant distances.

  /// Sets the place of the thread's first item, and what decides which items exist. The tile has `end` elements.
  void open_tile(Value* end) {
    first_ = b_.CreateAdd(b_.CreateMul(warp_, number(kWarp * items_)), lane_);
    limit_ = b_.CreateSub(end, first_);
  }
  Value* place(uint32_t i) { return b_.CreateAdd(first_, number(i * kWarp)); }
  /// Returns the number of elements from the first item to the end of the tile. It may be negative. LLVM does not see that
  /// it is the same each time: the results of comparisons with it would otherwise be kept in registers for each item.
  Value* limit() {
    auto* const type = llvm::FunctionType::get(i32_, {i32_}, false);
    return b_.CreateCall(llvm::InlineAsm::get(type, "mov.b32 $0, $1;", "=r,r", true), {limit_});
  }
  Value* exists(uint32_t i, Value* limit) { return b_.CreateICmpSGT(limit, number(i * kWarp)); }
  /// Returns the address of the thread's first item in an array with the elements of the tile.
  Value* at_tile(llvm::Type* type, Value* tile) { return b_.CreateGEP(type, tile, wide(first_)); }
  Value* load_item(llvm::Type* type, Value* first, uint32_t i) { return load(type, first, b_.getInt64(i * kWarp)); }

  /// Loads the thread's items of a tile. Those that do not exist are zero.
  Values load_items(llvm::Type* type, Value* tile) {
    Value* const from = at_tile(type, tile);
    Value* const end = limit();
    Values slots;
    for (uint32_t i = 0; i < items_; ++i) {
      slots.push_back(slot(type));
      b_.CreateStore(llvm::ConstantInt::get(type, 0), slots.back());
    }
    Value* const all_exist = exists(items_ - 1, end);
    branch(all_exist, [&] {
      for (uint32_t i = 0; i < items_; ++i) b_.CreateStore(load_item(type, from, i), slots[i]);
    });
    branch(b_.CreateNot(all_exist), [&] {
      for (uint32_t i = 0; i < items_; ++i)
        branch(exists(i, end), [&] { b_.CreateStore(load_item(type, from, i), slots[i]); });
    });
    Values out;
    for (Value* s : slots) out.push_back(b_.CreateLoad(type, s));
    return out;
  }
  bool is_counting_thread_always() const { return threads_ == kDigits; }
  /// Runs `body` in the threads that have a digit: the first 256.
  void with_digit(const std::function<void()>& body) {
    if (is_counting_thread_always()) return body();
    branch(b_.CreateICmpULT(thread_, number(kDigits)), body);
  }

  /// Allocates the shared memory of kRows and kPass. The warps' counts of digits and the elements that are exchanged
  /// have the same memory.
  void open() {
    exchange_ = make_shared_array(function_, b_.getInt8Ty(), r_.exchange_bytes());
    sums_ = shared_words(2 * kDigits / kWarp);
    bases_ = shared_words(kDigits);
  }
  Value* warp_counts() { return word(exchange_, b_.CreateMul(warp_, number(kDigits))); }
  void clear_counts() {
    each(warps_ * kDigits, [&](Value* at) { store_word(exchange_, at, number(0)); });
  }

  /// Returns the lanes whose `digit` has the same bit `bit`, a power of two, as this lane's. As an instruction of LLVM, the
  /// bit would be tested twice.
  Value* lanes_alike(Value* digit, uint32_t bit) {
    auto* const type = llvm::FunctionType::get(i32_, {i32_, i32_}, false);
    constexpr const char* kText =
        "{\n\t.reg .pred \t%p;\n\tand.b32 \t$0, $1, $2;\n\tsetp.ne.u32 \t%p, $0, 0;\n\t"
        "vote.sync.ballot.b32 \t$0, %p, -1;\n\t@!%p not.b32 \t$0, $0;\n\t}";
    llvm::CallInst* const call =
        b_.CreateCall(llvm::InlineAsm::get(type, kText, "=&r,r,n", true), {digit, number(bit)});
    call->setConvergent();
    return call;
  }

  /// Returns for each item its digit, shifted by 16 bits, and the number of elements before it in its warp that have
  /// this digit. Adds the elements to the warp's counts. Elements that do not exist have the last digit.
  Values rank_in_warps(const Values& elements, Value* shift) {
    Value* const end = limit();
    Value* const own = warp_counts();
    Value* const before = b_.CreateSub(b_.CreateShl(number(1), lane_), number(1));
    Values out;
    for (uint32_t i = 0; i < items_; ++i) {
      Value* const digit = b_.CreateSelect(exists(i, end), digit_of(key(elements[i]), shift), number(kDigits - 1));
      Value* peers = number(~0U);
      for (uint32_t bit = 1; bit < kDigits; bit *= 2) {
        peers = b_.CreateAnd(peers, lanes_alike(digit, bit));
      }
      Value* const earlier = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b_.CreateAnd(peers, before));
      Value* const held = slot(i32_);
      b_.CreateStore(number(0), held);
      branch(b_.CreateICmpEQ(earlier, number(0)), [&] {
        Value* const count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, peers);
        b_.CreateStore(add_atomically(word(own, digit), count), held);
      });
      Value* const leader = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, peers, b_.getTrue());
      Value* const so_far = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
                                               {number(~0U), b_.CreateLoad(i32_, held), leader, number(kWarp - 1)});
      out.push_back(b_.CreateOr(b_.CreateAdd(so_far, earlier), b_.CreateShl(digit, number(16))));
    }
    return out;
  }

  /// Returns the sums of `x` over the lanes of the warp up to this one.
  Value* scan_warp(Value* x) {
    for (uint32_t distance = 1; distance < kWarp; distance *= 2) {
      Value* const other =
          b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_up_i32, {}, {number(~0U), x, number(distance), number(0)});
      x = b_.CreateAdd(x, b_.CreateSelect(b_.CreateICmpUGE(lane_, number(distance)), other, number(0)));
    }
    return x;
  }

  /// Returns the sum of the `warps` values of sums_ from `first` on that belong to warps before this one.
  Value* sum_before(uint32_t first, uint32_t warps) {
    Value* sum = number(0);
    for (uint32_t w = 0; w + 1 < warps; ++w) {
      Value* const one = load_word(sums_, number(first + w));
      sum = b_.CreateAdd(sum, b_.CreateSelect(b_.CreateICmpULT(number(w), warp_), one, number(0)));
    }
    return sum;
  }

  /// Makes of the warps' counts of digits the place of the first element of each warp and digit in the tile. Elements are
  /// ordered by digits, then by warps. `known` is called in each thread that has a digit with the tile's count of it.
  /// Returns the place of the digit's first element and the sum of `others`, one value of each thread that has a digit,
  /// over the lesser digits, if it is not null.
  std::pair<Value*, Value*> place_digits(Value* others, const std::function<void(Value*)>& known) {
    const auto of_warp = [&](uint32_t w) { return b_.CreateAdd(thread_, number(w * kDigits)); };
    Value* const count = slot(i32_);
    b_.CreateStore(number(0), count);
    with_digit([&] {
      Value* sum = number(0);
      for (uint32_t w = 0; w < warps_; ++w) sum = b_.CreateAdd(sum, load_word(exchange_, of_warp(w)));
      b_.CreateStore(sum, count);
      if (known) known(sum);
    });
    Value* const own = b_.CreateLoad(i32_, count);
    Value* const scanned = scan_warp(own);
    Value* const scanned_others = others ? scan_warp(others) : nullptr;
    constexpr uint32_t kGroups = kDigits / kWarp;
    Value* const writes =
        b_.CreateAnd(b_.CreateICmpEQ(lane_, number(kWarp - 1)), b_.CreateICmpULT(warp_, number(kGroups)));
    branch(writes, [&] {
      store_word(sums_, warp_, scanned);
      if (others) store_word(sums_, b_.CreateAdd(warp_, number(kGroups)), scanned_others);
    });
    barrier();
    Value* const start = b_.CreateAdd(b_.CreateSub(scanned, own), sum_before(0, kGroups));
    Value* const others_before =
        others ? b_.CreateAdd(b_.CreateSub(scanned_others, others), sum_before(kGroups, kGroups)) : nullptr;
    with_digit([&] {
      Value* at = start;
      for (uint32_t w = 0; w < warps_; ++w) {
        Value* const one = load_word(exchange_, of_warp(w));
        store_word(exchange_, of_warp(w), at);
        at = b_.CreateAdd(at, one);
      }
    });
    barrier();
    return {start, others_before};
  }

  /// Returns the places of the items in the tile in the new order. `ranks`: see rank_in_warps. After this, the memory of
  /// the counts may be used for elements.
  Values places_of(const Values& ranks) {
    Value* const own = warp_counts();
    Values out;
    for (Value* rank : ranks) {
      Value* const first = load_word(own, b_.CreateLShr(rank, number(16)));
      out.push_back(b_.CreateAdd(first, b_.CreateAnd(rank, number(0xffff))));
    }
    barrier();
    return out;
  }

  // A row in one block.

  void rows() {
    open();
    const bool has_numbers = r_.payload != GridRadix::Payload::kNothing;
    llvm::Type* const short_type = b_.getInt16Ty();
    open_tile(number(static_cast<uint64_t>(r_.length)));
    Value* const row = b_.CreateMul(wide(block_), b_.getInt64(static_cast<uint64_t>(r_.length)));
    Value* const from = b_.CreateGEP(key_type_, argument(0), row);
    const Values first_elements = load_items(key_type_, from);
    Values elements;
    Values numbers;
    for (uint32_t i = 0; i < items_; ++i) {
      elements.push_back(slot(key_type_));
      b_.CreateStore(first_elements[i], elements.back());
      if (!has_numbers) continue;
      numbers.push_back(slot(short_type));
      b_.CreateStore(b_.CreateTrunc(place(i), short_type), numbers.back());
    }
    const auto loaded = [&](const Values& slots, llvm::Type* type) {
      Values out;
      for (Value* s : slots) out.push_back(b_.CreateLoad(type, s));
      return out;
    };
    Value* const number_exchange =
        b_.CreateConstGEP1_64(b_.getInt8Ty(), exchange_, static_cast<uint64_t>(r_.tile() * r_.key_bytes()));
    ir_.loop(b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(r_.passes)), b_.getInt64(1), [&](Value* pass) {
      clear_counts();
      barrier();
      const Values held = loaded(elements, key_type_);
      const Values ranks = rank_in_warps(held, b_.CreateShl(b_.CreateTrunc(pass, i32_), number(3)));
      barrier();
      place_digits(nullptr, nullptr);
      const Values places = places_of(ranks);
      for (uint32_t i = 0; i < items_; ++i) {
        store(exchange_, places[i], held[i]);
        if (has_numbers) store(number_exchange, places[i], b_.CreateLoad(short_type, numbers[i]));
      }
      barrier();
      Value* const own = at_tile(key_type_, exchange_);
      Value* const own_numbers = at_tile(short_type, number_exchange);
      for (uint32_t i = 0; i < items_; ++i) {
        b_.CreateStore(load_item(key_type_, own, i), elements[i]);
        if (has_numbers) b_.CreateStore(load_item(short_type, own_numbers, i), numbers[i]);
      }
      barrier();
    });
    size_t next = 1;
    Value* const result = b_.CreateMul(wide(block_), b_.getInt64(static_cast<uint64_t>(r_.pitch)));
    Value* const sorted = b_.CreateGEP(key_type_, argument(next++), result);
    Value* const numbers_out = r_.writes_values() ? b_.CreateGEP(i32_, argument(next++), result) : nullptr;
    limit_ = b_.CreateSub(number(static_cast<uint64_t>(r_.kept)), first_);
    Value* const end = limit();
    for (uint32_t i = 0; i < items_; ++i) {
      branch(exists(i, end), [&] {
        Value* const at = wide(place(i));
        store(sorted, at, b_.CreateLoad(key_type_, elements[i]));
        if (!has_numbers) return;
        Value* const origin = b_.CreateZExt(b_.CreateLoad(short_type, numbers[i]), i32_);
        if (numbers_out) store(numbers_out, at, origin);
        gather(next, b_.CreateAdd(row, wide(origin)), b_.CreateAdd(result, at));
      });
    }
  }

  /// Copies element `from` of each gathered array to element `to` of its result. The arrays are the parameters from `first`
  /// on; their results are those from `result` on, or follow the arrays if it is 0.
  void gather(size_t first, Value* from, Value* to, size_t result = 0) {
    if (!r_.gathers()) return;
    if (result == 0) result = first + r_.gathered.size();
    for (size_t k = 0; k < r_.gathered.size(); ++k) {
      const auto bytes = static_cast<int64_t>(collet_type_bytes(r_.gathered[k]));
      const int64_t parts = bytes > 8 ? bytes / 8 : 1;
      llvm::Type* const type = integer(bytes / parts);
      for (int64_t p = 0; p < parts; ++p) {
        const auto at = [&](Value* element) {
          Value* const index = b_.CreateMul(element, b_.getInt64(static_cast<uint64_t>(parts)));
          return b_.CreateAdd(index, b_.getInt64(static_cast<uint64_t>(p)));
        };
        store(argument(result + k), at(to), load(type, argument(first + k), at(from)));
      }
    }
  }

  // Selection.

  void select() {
    constexpr uint32_t kCopies = 4;
    constexpr uint32_t kGroups = kDigits / kWarp;
    llvm::Type* const type = r_.key_bytes() > 4 ? i64_ : i32_;  // in which keys are computed
    Value* const counted = shared_words(kDigits * kCopies);
    sums_ = shared_words(std::max(kGroups, 2 * warps_));
    Value* const found = shared_words(2);  // a digit, and how many elements with it are to be selected
    const auto tiles = static_cast<uint64_t>(r_.tiles);
    Value* const row_number = b_.CreateUDiv(block_, number(tiles));
    Value* const tile = b_.CreateSub(block_, b_.CreateMul(row_number, number(tiles)));
    Value* const first = b_.CreateMul(tile, number(static_cast<uint64_t>(r_.tile())));
    Value* const in_row =
        b_.CreateAdd(b_.CreateMul(wide(row_number), b_.getInt64(static_cast<uint64_t>(r_.length))), wide(first));
    Value* const end = minimum(b_.CreateSub(number(static_cast<uint64_t>(r_.length)), first),
                               number(static_cast<uint64_t>(r_.tile())));
    open_tile(end);
    const Values elements = load_items(key_type_, b_.CreateGEP(key_type_, argument(0), in_row));
    Values keys;
    for (Value* element : elements) keys.push_back(b_.CreateZExtOrTrunc(key(element), type));
    Value* const prefix = slot(type);  // what is known of the last selected key
    Value* const left = slot(i32_);    // how many of the elements with this prefix are to be selected
    b_.CreateStore(llvm::ConstantInt::get(type, 0), prefix);
    b_.CreateStore(minimum(end, number(static_cast<uint64_t>(r_.kept))), left);
    const auto passes = static_cast<uint64_t>(r_.passes);
    ir_.loop(b_.getInt64(0), b_.getInt64(passes), b_.getInt64(1), [&](Value* pass) {
      Value* const shift = b_.CreateZExtOrTrunc(b_.CreateShl(b_.CreateSub(b_.getInt64(passes - 1), pass), 3), type);
      Value* const known = b_.CreateLoad(type, prefix);
      each(kDigits * kCopies, [&](Value* at) { store_word(counted, at, number(0)); });
      barrier();
      Value* const limit_now = limit();
      for (uint32_t i = 0; i < items_; ++i) {
        Value* const differs = b_.CreateLShr(b_.CreateLShr(b_.CreateXor(keys[i], known), shift), 8);
        Value* const is_counted =
            b_.CreateAnd(exists(i, limit_now), b_.CreateICmpEQ(differs, llvm::ConstantInt::get(type, 0)));
        branch(is_counted, [&] {
          Value* const digit = b_.CreateAnd(b_.CreateTrunc(b_.CreateLShr(keys[i], shift), i32_), number(kDigits - 1));
          Value* const copy = b_.CreateAnd(lane_, number(kCopies - 1));
          add_atomically(word(counted, b_.CreateAdd(b_.CreateMul(digit, number(kCopies)), copy)), number(1));
        });
      }
      barrier();
      Value* const count = slot(i32_);
      b_.CreateStore(number(0), count);
      with_digit([&] {
        Value* sum = number(0);
        for (uint32_t c = 0; c < kCopies; ++c)
          sum = b_.CreateAdd(sum, load_word(counted, b_.CreateAdd(b_.CreateMul(thread_, number(kCopies)), number(c))));
        b_.CreateStore(sum, count);
      });
      Value* const own = b_.CreateLoad(i32_, count);
      Value* const scanned = scan_warp(own);
      branch(b_.CreateAnd(b_.CreateICmpEQ(lane_, number(kWarp - 1)), b_.CreateICmpULT(warp_, number(kGroups))),
             [&] { store_word(sums_, warp_, scanned); });
      barrier();
      Value* const up_to = b_.CreateAdd(scanned, sum_before(0, kGroups));
      Value* const before = b_.CreateSub(up_to, own);
      Value* const wanted = b_.CreateLoad(i32_, left);
      Value* const is_here = b_.CreateAnd(b_.CreateICmpULT(before, wanted), b_.CreateICmpUGE(up_to, wanted));
      branch(b_.CreateAnd(is_here, b_.CreateICmpULT(thread_, number(kDigits))), [&] {
        store_word(found, number(0), thread_);
        store_word(found, number(1), b_.CreateSub(wanted, before));
      });
      barrier();
      Value* const digit = b_.CreateZExtOrTrunc(load_word(found, number(0)), type);
      b_.CreateStore(b_.CreateOr(known, b_.CreateShl(digit, shift)), prefix);
      b_.CreateStore(load_word(found, number(1)), left);
    });
    write_selected(keys, elements, b_.CreateLoad(type, prefix), b_.CreateLoad(i32_, left), row_number, tile, in_row);
  }

  /// Writes the elements of the tile whose keys are less than `last`, and the first `equals` whose keys are equal to it, in
  /// their order.
  void write_selected(const Values& keys, const Values& elements, Value* last, Value* equals, Value* row_number,
                      Value* tile, Value* in_row) {
    Values less;
    Values equal;
    Value* less_count = number(0);
    Value* equal_count = number(0);
    const auto ballot = [&](Value* x) {
      return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {}, {number(~0U), x});
    };
    const auto count = [&](Value* lanes) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, lanes); };
    Value* const end = limit();
    for (uint32_t i = 0; i < items_; ++i) {
      Value* const is_there = exists(i, end);
      less.push_back(ballot(b_.CreateAnd(is_there, b_.CreateICmpULT(keys[i], last))));
      equal.push_back(ballot(b_.CreateAnd(is_there, b_.CreateICmpEQ(keys[i], last))));
      less_count = b_.CreateAdd(less_count, count(less.back()));
      equal_count = b_.CreateAdd(equal_count, count(equal.back()));
    }
    branch(b_.CreateICmpEQ(lane_, number(0)), [&] {
      store_word(sums_, warp_, less_count);
      store_word(sums_, b_.CreateAdd(warp_, number(warps_)), equal_count);
    });
    barrier();
    Value* less_before = sum_before(0, warps_);
    Value* equal_before = sum_before(warps_, warps_);
    Value* const earlier = b_.CreateSub(b_.CreateShl(number(1), lane_), number(1));
    Value* const results = b_.CreateAdd(b_.CreateMul(wide(row_number), b_.getInt64(static_cast<uint64_t>(r_.pitch))),
                                        b_.CreateMul(wide(tile), b_.getInt64(static_cast<uint64_t>(r_.kept))));
    Value* const items = b_.CreateAdd(in_row, wide(first_));
    const size_t arrays = r_.gathered.size();
    for (uint32_t i = 0; i < items_; ++i) {
      const auto has = [&](Value* lanes) {
        return b_.CreateICmpNE(b_.CreateAnd(lanes, b_.CreateShl(number(1), lane_)), number(0));
      };
      Value* const rank = b_.CreateAdd(equal_before, count(b_.CreateAnd(equal[i], earlier)));
      Value* const is_taken = b_.CreateOr(has(less[i]), b_.CreateAnd(has(equal[i]), b_.CreateICmpULT(rank, equals)));
      branch(is_taken, [&] {
        Value* const place =
            b_.CreateAdd(b_.CreateAdd(less_before, count(b_.CreateAnd(less[i], earlier))), minimum(rank, equals));
        Value* const to = b_.CreateAdd(results, wide(place));
        store(argument(1 + arrays), to, elements[i]);
        gather(1, b_.CreateAdd(items, b_.getInt64(i * kWarp)), to, 2 + arrays);
      });
      less_before = b_.CreateAdd(less_before, count(less[i]));
      equal_before = b_.CreateAdd(equal_before, count(equal[i]));
    }
  }

  // A tile of a row.

  /// A tile of a pass, and the arrays of the pass besides keys.
  struct Tile {
    Value* ticket = nullptr;  ///< number of the tile among those of all rows
    Value* row_number = nullptr;
    Value* in_order = nullptr;  ///< number of the tile in its row
    Value* row = nullptr;       ///< first element of the row, i64
    Value* first = nullptr;     ///< first element of the tile in its row
    Values elements;            ///< the thread's items
    Value* values = nullptr;    ///< values that move along; null if there are none, or if they are made
    Value* sorted_values = nullptr;
    size_t gathered = 0;  ///< number of the parameter that is the first gathered array
    Value* state = nullptr;
  };

  void pass() {
    open();
    Tile t;
    size_t next = 2;
    if (r_.reads_values()) t.values = argument(next++);
    if (r_.writes_values()) t.sorted_values = argument(next++);
    t.gathered = next;
    if (r_.gathers()) next += 2 * r_.gathered.size();
    t.state = argument(next++);
    pass_ = b_.CreateTrunc(argument(next), i32_);
    clear_counts();
    branch(b_.CreateICmpEQ(thread_, number(0)),
           [&] { store_word(sums_, number(0), add_atomically(word(t.state, pass_), number(1))); });
    barrier();
    t.ticket = load_word(sums_, number(0));
    const auto tiles = static_cast<uint64_t>(r_.tiles);
    t.row_number = b_.CreateUDiv(t.ticket, number(tiles));
    t.in_order = b_.CreateSub(t.ticket, b_.CreateMul(t.row_number, number(tiles)));
    t.row = b_.CreateMul(wide(t.row_number), b_.getInt64(static_cast<uint64_t>(r_.length)));
    t.first = b_.CreateMul(t.in_order, number(static_cast<uint64_t>(r_.tile())));
    open_tile(minimum(b_.CreateSub(number(static_cast<uint64_t>(r_.length)), t.first),
                      number(static_cast<uint64_t>(r_.tile()))));
    t.elements = load_items(key_type_, b_.CreateGEP(key_type_, argument(0), in_array(t)));
    open_status(t.state, t.ticket);
    if (r_.passes == 1) return sort_tile(t);
    // In a pass in which all elements of a row have the same digit, their order stays. The pass before knows it.
    Value* const stays = b_.CreateLoad(i32_, mark_of(t, pass_));
    mark_next(t);
    branch(b_.CreateICmpNE(stays, number(0)), [&] { copy_tile(t); });
    branch(b_.CreateICmpEQ(stays, number(0)), [&] { sort_tile(t); });
  }

  /// Returns the number of the tile's first element in an array.
  Value* in_array(const Tile& t) { return b_.CreateAdd(t.row, wide(t.first)); }
  llvm::Type* value_type() { return integer(r_.value_bytes); }
  Values load_values(const Tile& t) {
    return load_items(value_type(), b_.CreateGEP(value_type(), t.values, in_array(t)));
  }
  /// Returns the address of the word that tells whether the elements of the tile's row have the same digit in a pass.
  Value* mark_of(const Tile& t, Value* pass) {
    Value* const mark =
        b_.CreateAdd(b_.CreateMul(wide(t.row_number), b_.getInt64(static_cast<uint64_t>(r_.passes))), wide(pass));
    return word(t.state,
                b_.CreateAdd(mark, b_.getInt64(static_cast<uint64_t>(GridRadix::kFirstCount + r_.count_words()))));
  }
  /// Returns the address of the row's count of the thread's digit in a pass.
  Value* count_of(const Tile& t, Value* pass) {
    Value* const counts = b_.CreateMul(
        b_.CreateAdd(b_.CreateMul(wide(t.row_number), b_.getInt64(static_cast<uint64_t>(r_.passes))), wide(pass)),
        b_.getInt64(kDigits));
    return word(t.state, b_.CreateAdd(b_.CreateAdd(counts, b_.getInt64(GridRadix::kFirstCount)), wide(thread_)));
  }

  /// Writes the mark of the next pass.
  void mark_next(const Tile& t) {
    Value* const following = b_.CreateAdd(pass_, number(1));
    Value* const exists = b_.CreateICmpULT(following, number(static_cast<uint64_t>(r_.passes)));
    branch(b_.CreateAnd(exists, b_.CreateICmpEQ(t.in_order, number(0))), [&] {
      with_digit([&] {
        Value* const count = b_.CreateLoad(i32_, count_of(t, following));
        branch(b_.CreateICmpEQ(count, number(static_cast<uint64_t>(r_.length))),
               [&] { b_.CreateStore(number(1), mark_of(t, following)); });
      });
    });
  }

  /// Writes the results of an item: the value, or the gathered elements, from place `from` in the row to place `to`.
  void write_value(const Tile& t, Value* value, Value* to) {
    if (t.sorted_values) store(b_.CreateGEP(value_type(), t.sorted_values, t.row), wide(to), value);
    if (r_.gathers()) gather(t.gathered, b_.CreateAdd(t.row, wide(value)), b_.CreateAdd(t.row, wide(to)));
  }

  void copy_tile(const Tile& t) {
    const bool has_values = r_.payload != GridRadix::Payload::kNothing;
    with_digit([&] { clear_next(); });
    const Values held = t.values ? load_values(t) : Values();
    Value* const sorted = b_.CreateGEP(key_type_, argument(1), t.row);
    Value* const end = limit();
    for (uint32_t i = 0; i < items_; ++i) {
      branch(exists(i, end), [&] {
        Value* const at = b_.CreateAdd(t.first, place(i));
        store(sorted, wide(at), t.elements[i]);
        if (has_values) write_value(t, t.values ? held[i] : at, at);
      });
    }
  }

  void sort_tile(const Tile& t) {
    const bool has_values = r_.payload != GridRadix::Payload::kNothing;
    Value* const shift = b_.CreateShl(pass_, number(3));
    Value* const of_row = slot(i32_);  // the row's count of the thread's digit
    b_.CreateStore(number(0), of_row);
    with_digit([&] { b_.CreateStore(b_.CreateLoad(i32_, count_of(t, pass_)), of_row); });
    const Values ranks = rank_in_warps(t.elements, shift);
    barrier();
    const auto [start, before] = place_digits(b_.CreateLoad(i32_, of_row), [&](Value* count) {
      clear_next();
      Value* const flag = b_.CreateSelect(b_.CreateICmpEQ(t.in_order, number(0)), status(kInclusive), status(kOwn));
      publish(b_.CreateOr(b_.CreateZExt(count, status_type_), flag));
      b_.CreateStore(count, of_row);
    });
    const Values places = places_of(ranks);
    for (uint32_t i = 0; i < items_; ++i) store(exchange_, places[i], t.elements[i]);
    const Values held = t.values ? load_values(t) : Values();
    with_digit([&] {
      Value* const prefix = look_back(t.in_order, b_.CreateLoad(i32_, of_row));
      store_word(bases_, thread_, b_.CreateSub(b_.CreateAdd(before, prefix), start));
    });
    barrier();
    Value* const sorted = b_.CreateGEP(key_type_, argument(1), t.row);
    Values targets;
    Value* const own = at_tile(key_type_, exchange_);
    Value* const key_limit = limit();
    for (uint32_t i = 0; i < items_; ++i) {
      Value* const element = load_item(key_type_, own, i);
      Value* const at = b_.CreateAdd(load_word(bases_, digit_of(key(element), shift)), place(i));
      branch(exists(i, key_limit), [&] { store(sorted, wide(at), element); });
      targets.push_back(at);
    }
    if (!has_values) return;
    barrier();
    for (uint32_t i = 0; i < items_; ++i)
      store(exchange_, places[i], t.values ? held[i] : b_.CreateAdd(t.first, place(i)));
    barrier();
    Value* const own_values = at_tile(value_type(), exchange_);
    Value* const value_limit = limit();
    for (uint32_t i = 0; i < items_; ++i) {
      Value* const value = load_item(value_type(), own_values, i);
      branch(exists(i, value_limit), [&] { write_value(t, value, targets[i]); });
    }
  }

  // The counts that tiles publish: a number and, above it, one of two flags. Memory without a flag has not been written.

  enum Flag : uint64_t { kOwn = 1, kInclusive = 2 };
  unsigned flag_bit() const { return r_.is_wide ? 62 : 30; }
  Value* status(uint64_t flag) { return llvm::ConstantInt::get(status_type_, flag << flag_bit()); }

  /// Sets the addresses of the counts that this pass and the next one publish.
  void open_status(Value* state, Value* ticket) {
    status_type_ = r_.is_wide ? i64_ : i32_;
    Value* const first = b_.getInt64(static_cast<uint64_t>(r_.first_status()));
    Value* const other = b_.getInt64(static_cast<uint64_t>(r_.first_status() + r_.tile_words()));
    Value* const is_odd = b_.CreateICmpNE(b_.CreateAnd(pass_, number(1)), number(0));
    Value* const own = b_.CreateAdd(b_.CreateMul(wide(ticket), b_.getInt64(kDigits)), wide(thread_));
    status_ = b_.CreateGEP(status_type_, word(state, b_.CreateSelect(is_odd, other, first)), own);
    next_status_ = b_.CreateGEP(status_type_, word(state, b_.CreateSelect(is_odd, first, other)), own);
  }
  void clear_next() { b_.CreateStore(llvm::ConstantInt::get(status_type_, 0), next_status_); }
  void publish(Value* x) { b_.CreateAlignedStore(x, status_, status_align(), true); }
  llvm::Align status_align() const { return llvm::Align(r_.is_wide ? 8 : 4); }

  /// Returns how many elements of the tiles before this one have the thread's digit, and publishes the number for this
  /// tile's successors. `count`: the tile's own count.
  Value* look_back(Value* tile, Value* count) {
    Value* const sum = slot(status_type_);
    Value* const at = slot(i32_);  // the distance to the next tile that is to be added
    Value* const done = slot(b_.getInt1Ty());
    b_.CreateStore(llvm::ConstantInt::get(status_type_, 0), sum);
    branch(b_.CreateICmpNE(tile, number(0)), [&] {
      b_.CreateStore(number(1), at);
      b_.CreateStore(b_.getFalse(), done);
      llvm::BasicBlock* const head = llvm::BasicBlock::Create(ir_.context(), "look_back", function_);
      llvm::BasicBlock* const exit = llvm::BasicBlock::Create(ir_.context(), "found", function_);
      b_.CreateBr(head);
      b_.SetInsertPoint(head);
      Value* const nearest = b_.CreateLoad(i32_, at);
      Values read;
      for (uint64_t i = 0; i < kLookback; ++i) {
        // The first tile ends the search, so what stands in for tiles before it is not used.
        Value* const distance = minimum(b_.CreateAdd(nearest, number(i)), tile);
        Value* const offset = b_.CreateMul(wide(distance), b_.getInt64(-int64_t{kDigits}));
        read.push_back(
            b_.CreateAlignedLoad(status_type_, b_.CreateGEP(status_type_, status_, offset), status_align(), true));
      }
      Value* going = b_.getTrue();
      Value* found = b_.getFalse();
      Value* total = b_.CreateLoad(status_type_, sum);
      Value* taken = nearest;
      for (Value* x : read) {
        Value* const flag = b_.CreateLShr(x, llvm::ConstantInt::get(status_type_, flag_bit()));
        Value* const is_there = b_.CreateICmpNE(flag, llvm::ConstantInt::get(status_type_, 0));
        Value* const takes = b_.CreateAnd(going, is_there);
        Value* const is_last =
            b_.CreateAnd(takes, b_.CreateICmpEQ(flag, llvm::ConstantInt::get(status_type_, uint64_t{kInclusive})));
        Value* const counted = b_.CreateAnd(x, llvm::ConstantInt::get(status_type_, (uint64_t{1} << flag_bit()) - 1));
        total = b_.CreateAdd(total, b_.CreateSelect(takes, counted, llvm::ConstantInt::get(status_type_, 0)));
        taken = b_.CreateAdd(taken, b_.CreateZExt(takes, i32_));
        found = b_.CreateOr(found, is_last);
        going = b_.CreateAnd(takes, b_.CreateNot(is_last));
      }
      b_.CreateStore(total, sum);
      b_.CreateStore(taken, at);
      b_.CreateCondBr(found, exit, head);
      b_.SetInsertPoint(exit);
      publish(b_.CreateOr(b_.CreateAdd(total, b_.CreateZExt(count, status_type_)), status(kInclusive)));
    });
    return b_.CreateTrunc(b_.CreateLoad(status_type_, sum), i32_);
  }

  const GridRadix& r_;
  const KeyConstants keys_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_;
  llvm::Type* i32_;
  llvm::Type* i64_;
  llvm::IntegerType* key_type_;
  llvm::Type* status_type_ = nullptr;
  const uint32_t threads_;
  const uint32_t warps_;
  const uint32_t items_;
  Value* thread_ = nullptr;  ///< number of the thread in its block; all numbers here are i32
  Value* block_ = nullptr;
  Value* lane_ = nullptr;
  Value* warp_ = nullptr;
  Value* pass_ = nullptr;
  Value* first_ = nullptr;  ///< see open_tile
  Value* limit_ = nullptr;
  llvm::GlobalVariable* exchange_ = nullptr;
  Value* sums_ = nullptr;   ///< sums of counts over warps' shares of digits
  Value* bases_ = nullptr;  ///< of each digit: place in the row less place in the tile
  Value* status_ = nullptr;
  Value* next_status_ = nullptr;
};

}  // namespace

llvm::Function* emit_grid_radix(const GridRadix& radix, llvm::Module& module, const Target& target,
                                const std::string& name) {
  using Part = GridRadix::Part;
  size_t arrays = 2;  // keys and sorted keys, or keys and state
  if (radix.part == Part::kPass) arrays += 1 + (radix.reads_values() ? 1U : 0U);
  if (radix.part != Part::kCounts) {
    if (radix.part != Part::kSelect && radix.writes_values()) ++arrays;
    if (radix.gathers()) arrays += 2 * radix.gathered.size();
  }
  std::vector<llvm::Type*> parameters(arrays, llvm::PointerType::get(module.getContext(), 0));
  if (radix.part == Part::kPass) parameters.push_back(llvm::Type::getInt64Ty(module.getContext()));
  llvm::Function* const function =
      make_grid_function(module, target, name, parameters, radix.block_threads, radix.resident_blocks());
  RadixEmitter(radix, module, target, function).emit();
  return function;
}

}  // namespace collet::codegen
