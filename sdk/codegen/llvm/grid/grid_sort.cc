// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_sort.h"

#include <functional>
#include <vector>

#include "sdk/codegen/llvm/grid/grid_function.h"
#include "sdk/codegen/llvm/kernel/emit_memory.h"
#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

namespace collet::codegen {
namespace {

using llvm::Value;

/// Emits one kernel of a bitonic sort as the program of a thread, which compares pairs of elements.
class SortEmitter {
 public:
  SortEmitter(const GridSort& sort, llvm::Module& module, const Target& target, llvm::Function* function)
      : s_(sort), ir_(module, target), b_(ir_.b), function_(function) {}

  void emit() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.context(), "entry", function_));
    thread_ = emit_thread_number(b_);
    open();
    Value* const first = b_.CreateMul(emit_block_number(b_), number(s_.block_threads));
    const int log_groups = s_.log_length - s_.levels;
    const int64_t groups = s_.rows << log_groups;
    // All threads of a block run the same number of iterations, because each iteration has barriers.
    loop(first, number(groups), int64_t{s_.block_threads} * s_.blocks, [&](Value* chunk) {
      Value* const group = b_.CreateAdd(chunk, thread_);
      inside_ = b_.CreateICmpSLT(group, number(groups));
      row_ = b_.CreateLShr(group, number(log_groups));
      group_ = b_.CreateAnd(group, number((int64_t{1} << log_groups) - 1));
      first_ = b_.CreateShl(chunk, number(1));
      part();
    });
    b_.CreateRetVoid();
  }

 private:
  Value* number(int64_t x) { return b_.getInt64(static_cast<uint64_t>(x)); }
  Value* power(Value* exponent) { return b_.CreateShl(number(1), exponent); }
  Value* buffer(size_t i) { return function_->getArg(static_cast<unsigned>(i)); }
  size_t arrays() const { return s_.comparator.types.size(); }
  void barrier() { emit_barrier(b_); }
  void loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body) {
    ir_.loop(begin, end, number(step), body);
  }
  void branch(Value* condition, const std::function<void()>& body) { ir_.branch(condition, body); }
  bool is_shared() const { return s_.shares_segments && works_in_segments(s_.part); }

  /// Sets bases_ for this kernel: the addresses of the arrays, or of their copies in shared memory.
  void open() {
    for (size_t i = 0; i <= arrays(); ++i) {
      const auto bytes = static_cast<int64_t>(collet_type_bytes(type(i)));
      bases_.push_back(is_shared() ? make_shared_array(function_, b_.getInt8Ty(), 2 * s_.block_threads * bytes)
                                   : buffer(i));
    }
  }

  /// Returns the type of sorted array `i`. The array after the last one has the elements' original numbers.
  uint32_t type(size_t i) const { return i < arrays() ? s_.comparator.types[i] : uint32_t{COLLET_TYPE_S32}; }
  Val load(Value* base, size_t i, Value* at) { return load_lanes(ir_, base, type(i), {at, 0, nullptr, 1}, nullptr); }
  void store(Value* base, size_t i, Value* at, const Val& x) {
    store_lanes(ir_, base, type(i), {at, 0, nullptr, 1}, x, nullptr);
  }

  void part() {
    if (is_shared()) {
      each_element([&](Value* in_block, Value* in_row, Value* in_array) {
        for (size_t i = 0; i < arrays(); ++i) store(bases_[i], i, in_block, load(buffer(i), i, in_array));
        const bool is_first = s_.part == GridSort::Part::kSegments;
        const Val place =
            is_first ? Val{b_.CreateTrunc(in_row, b_.getInt32Ty())} : load(buffer(arrays()), arrays(), in_array);
        store(bases_[arrays()], arrays(), in_block, place);
      });
    } else if (s_.part == GridSort::Part::kSegments) {
      each_element([&](Value*, Value* in_row, Value* in_array) {
        store(buffer(arrays()), arrays(), in_array, {b_.CreateTrunc(in_row, b_.getInt32Ty())});
      });
    }
    compare();
    if (!is_shared()) return;
    const bool numbers_are_needed = s_.keeps_numbers || (s_.log_length > s_.log_segment && !s_.only_segments);
    each_element([&](Value* in_block, Value*, Value* in_array) {
      for (size_t i = 0; i < arrays() + (numbers_are_needed ? 1 : 0); ++i)
        store(buffer(i), i, in_array, load(bases_[i], i, in_block));
    });
    barrier();  // before the memory is used again
  }

  void compare() {
    switch (s_.part) {
      case GridSort::Part::kSegments:
        barrier();
        loop(number(1), number(s_.log_segment + 1), 1, [&](Value* length) {
          mirror(length);
          barrier();
          down_from(b_.CreateSub(length, number(2)));
        });
        return;
      case GridSort::Part::kMirror:
        return mirrored_levels(buffer(arrays() + 1));
      case GridSort::Part::kDistance:
        return levels(buffer(arrays() + 1));
      case GridSort::Part::kMerge:
        if (is_shared()) barrier();
        return down_from(number(s_.log_segment - 1));
    }
  }

  /// Emits compare-exchange steps for the distances 2^longest down to 1.
  void down_from(Value* longest) {
    loop(number(0), b_.CreateAdd(longest, number(1)), 1, [&](Value* i) {
      distance(b_.CreateSub(longest, i));
      barrier();
    });
  }

  /// Calls `body` for the two elements of each thread's share of the block: with their numbers in the block, in the row
  /// and in the array.
  void each_element(const std::function<void(Value*, Value*, Value*)>& body) {
    for (int64_t i = 0; i < 2; ++i) {
      Value* const in_block = b_.CreateAdd(thread_, number(i * s_.block_threads));
      Value* const at = b_.CreateAdd(first_, in_block);
      Value* const row = b_.CreateLShr(at, number(s_.log_length));
      Value* const in_row = b_.CreateAnd(at, number((int64_t{1} << s_.log_length) - 1));
      Value* const exists =
          b_.CreateAnd(b_.CreateICmpSLT(row, number(s_.rows)), b_.CreateICmpSLT(in_row, number(s_.length)));
      branch(exists, [&] { body(in_block, in_row, in_array(row, in_row)); });
    }
  }

  Value* in_array(Value* row, Value* in_row) {
    Value* const outer = b_.CreateMul(b_.CreateUDiv(row, number(s_.step)), number(s_.length * s_.step));
    return b_.CreateAdd(b_.CreateAdd(outer, b_.CreateURem(row, number(s_.step))),
                        b_.CreateMul(in_row, number(s_.step)));
  }

  /// Returns the index of element `at` of this thread's row in bases_.
  Value* element(Value* at) {
    if (!is_shared()) return in_array(row_, at);
    return b_.CreateSub(b_.CreateAdd(b_.CreateShl(row_, number(s_.log_length)), at), first_);
  }

  /// Emits a compare-exchange step for the mirrored pairs of each block of 2^length elements: the first with the last,
  /// the second with the last but one, and so on.
  void mirror(Value* length) {
    Value* const half = b_.CreateSub(length, number(1));
    Value* const within = b_.CreateAnd(group_, b_.CreateSub(power(half), number(1)));
    Value* const start = b_.CreateShl(b_.CreateLShr(group_, half), length);
    exchange(b_.CreateAdd(start, within),
             b_.CreateSub(b_.CreateAdd(start, b_.CreateSub(power(length), number(1))), within));
  }

  void distance(Value* exponent) {
    Value* const within = b_.CreateAnd(group_, b_.CreateSub(power(exponent), number(1)));
    Value* const low =
        b_.CreateAdd(b_.CreateShl(b_.CreateLShr(group_, exponent), b_.CreateAdd(exponent, number(1))), within);
    exchange(low, b_.CreateAdd(low, power(exponent)));
  }

  /// Puts the element that comes first at `low`. A `high` behind the end of the row needs no exchange.
  void exchange(Value* low, Value* high) {
    branch(b_.CreateAnd(inside_, b_.CreateICmpSLT(high, number(s_.length))), [&] {
      Value* const first = element(low);
      Value* const second = element(high);
      const std::vector<Val> x = load_all(first);
      const std::vector<Val> y = load_all(second);
      branch(must_swap(x, y), [&] {
        store_all(first, y);
        store_all(second, x);
      });
    });
  }

  std::vector<Val> load_all(Value* at) {
    std::vector<Val> out;
    for (size_t i = 0; i <= arrays(); ++i) out.push_back(load(bases_[i], i, at));
    return out;
  }
  void store_all(Value* at, const std::vector<Val>& x) {
    for (size_t i = 0; i <= arrays(); ++i) store(bases_[i], i, at, x[i]);
  }

  /// Returns whether element `y` comes before `x`. The last value of an element is its number.
  Value* must_swap(const std::vector<Val>& x, const std::vector<Val>& y) {
    std::vector<Val> forward;
    std::vector<Val> backward;
    for (size_t i = 0; i < arrays(); ++i) {
      forward.insert(forward.end(), {x[i], y[i]});
      backward.insert(backward.end(), {y[i], x[i]});
    }
    Value* const is_before = emit_body(ir_, s_.comparator.body, forward)[0].v;
    Value* const is_after = emit_body(ir_, s_.comparator.body, backward)[0].v;
    Value* const earlier = b_.CreateICmpSLT(y.back().v, x.back().v);
    // Elements that compare as equal keep their order. A comparator that is true for equal elements, such as LE,
    // reverses their order, as in a stable insertion sort that moves each element before all that it comes before.
    Value* const of_equal = b_.CreateXor(is_after, earlier);
    return b_.CreateSelect(b_.CreateXor(is_before, is_after), is_after, of_equal);
  }

  // Several steps whose elements a thread holds in registers. Bit i of an element's number in the thread's group is its
  // side in the pairs of the step with the i-th distance from the end.

  int group_size() const { return 1 << s_.levels; }

  void mirrored_levels(Value* length) {
    Value* const log_least = b_.CreateSub(length, number(s_.levels));  // of the last step's distance
    Value* const within = b_.CreateAnd(group_, b_.CreateSub(power(log_least), number(1)));
    Value* const start = b_.CreateShl(b_.CreateLShr(group_, log_least), length);
    Value* const end = b_.CreateAdd(start, b_.CreateSub(power(length), number(1)));
    const auto after = [&](int steps) { return b_.CreateAdd(within, b_.CreateShl(number(steps), log_least)); };
    const int half = group_size() / 2;
    std::vector<Value*> places;
    for (int i = 0; i < half; ++i) places.push_back(b_.CreateAdd(start, after(i)));
    for (int i = 0; i < half; ++i) places.push_back(b_.CreateSub(end, after(half - 1 - i)));
    in_registers(places, [&] {
      for (int i = 0; i < half; ++i) order(i, group_size() - 1 - i);
      for (int side = half / 2; side > 0; side /= 2) step(side);
    });
  }

  void levels(Value* exponent) {
    Value* const log_least = b_.CreateSub(exponent, number(s_.levels - 1));
    Value* const within = b_.CreateAnd(group_, b_.CreateSub(power(log_least), number(1)));
    Value* const start =
        b_.CreateAdd(b_.CreateShl(b_.CreateLShr(group_, log_least), b_.CreateAdd(exponent, number(1))), within);
    std::vector<Value*> places;
    for (int i = 0; i < group_size(); ++i) places.push_back(b_.CreateAdd(start, b_.CreateShl(number(i), log_least)));
    in_registers(places, [&] {
      for (int side = group_size() / 2; side > 0; side /= 2) step(side);
    });
  }

  /// Loads the elements at these places of the row, the first of which is the least; runs `steps`; and stores them.
  void in_registers(const std::vector<Value*>& places, const std::function<void()>& steps) {
    const auto exists = [&](Value* place) { return b_.CreateICmpSLT(place, number(s_.length)); };
    branch(b_.CreateAnd(inside_, exists(places[0])), [&] {
      std::vector<Value*> at;
      for (Value* place : places) {
        exists_.push_back(exists(place));
        // An element behind the end of the row is never moved. The first element of the group is loaded in its place,
        // because other threads may write to any element outside of the group.
        at.push_back(in_array(row_, b_.CreateSelect(exists_.back(), place, places[0])));
        held_.push_back(load_all(at.back()));
      }
      steps();
      for (size_t i = 0; i < held_.size(); ++i) branch(exists_[i], [&] { store_all(at[i], held_[i]); });
    });
  }

  void step(int side) {
    for (int i = 0; i < group_size(); ++i) {
      if ((i & side) == 0) order(i, i | side);
    }
  }

  /// Exchanges two held elements if the second comes first.
  void order(int first, int second) {
    std::vector<Val>& x = held_[static_cast<size_t>(first)];
    std::vector<Val>& y = held_[static_cast<size_t>(second)];
    Value* const swap = b_.CreateAnd(must_swap(x, y), exists_[static_cast<size_t>(second)]);
    for (size_t i = 0; i <= arrays(); ++i) {
      const Val before = x[i];
      x[i] = ir_.select(swap, y[i], before);
      y[i] = ir_.select(swap, before, y[i]);
    }
  }

  const GridSort& s_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_;
  /// Addresses of the sorted arrays while pairs are compared, followed by that of the original numbers.
  std::vector<Value*> bases_;
  Value* thread_ = nullptr;     ///< number of the thread in its block
  Value* inside_ = nullptr;     ///< whether the thread has a group: a pair, unless the kernel has several levels
  Value* row_ = nullptr;        ///< row of the group
  Value* group_ = nullptr;      ///< number of the group in its row
  std::vector<Value*> exists_;  ///< for several levels: whether the element of the group is one of the row
  std::vector<std::vector<Val>> held_;  ///< the elements, and last their numbers
  /// First element of the block's segment, if each row of the block has 2^log_length elements.
  Value* first_ = nullptr;
};

}  // namespace

llvm::Function* emit_grid_sort(const GridSort& sort, llvm::Module& module, const Target& target,
                               const std::string& name) {
  const size_t arrays = sort.comparator.types.size();
  std::vector<llvm::Type*> parameters(arrays + 1, llvm::PointerType::get(module.getContext(), 0));
  if (sort.part == GridSort::Part::kMirror || sort.part == GridSort::Part::kDistance)
    parameters.push_back(llvm::Type::getInt64Ty(module.getContext()));
  llvm::Function* const function = make_grid_function(module, target, name, parameters, sort.block_threads);
  SortEmitter(sort, module, target, function).emit();
  return function;
}

}  // namespace collet::codegen
