// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/emit_entry.h"

#include <llvm/IR/IRBuilder.h>

#include <cstddef>
#include <functional>
#include <map>

#include "sdk/codegen/launch/functions.h"
#include "sdk/codegen/llvm/emit.h"
#include "sdk/codegen/llvm/emit_steps.h"
#include "sdk/codegen/llvm/object_compiler.h"

namespace collet::codegen {
namespace {

using llvm::Value;

Value* numbers(llvm::Module& module, const std::vector<int64_t>& values) {
  llvm::Constant* const data = llvm::ConstantDataArray::get(module.getContext(), values);
  return new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
}

/// void part(char* const* buffers, int64_t begin, int64_t end, int32_t worker): what threads share.
llvm::FunctionType* part_function(llvm::LLVMContext& context) {
  llvm::Type* const number = llvm::Type::getInt64Ty(context);
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                 {llvm::PointerType::get(context, 0), number, number, llvm::Type::getInt32Ty(context)},
                                 false);
}

/// A matrix product as a function of the addresses of its places and of a range of its jobs: what MatmulRunner does.
class MatmulWriter {
 public:
  using Functions = std::vector<llvm::Function*>;

  MatmulWriter(const MatmulCall& call, const Functions& functions, llvm::Module& module, const Target& target)
      : c_(call),
        functions_(functions),
        module_(module),
        function_(llvm::Function::Create(part_function(module.getContext()), llvm::Function::InternalLinkage, "matmul",
                                         module)),
        w_(function_, target),
        b_(w_.b) {}

  llvm::Function* run() {
    buffers_ = function_->getArg(0);
    tile_ = w_.local(llvm::ArrayType::get(b_.getInt8Ty(), sizeof(Tile)));
    a_at_ = numbers(module_, c_.a_at);
    b_at_ = numbers(module_, c_.b_at);
    c_at_ = numbers(module_, c_.c_at);
    if (!c_.positions.empty()) positions_ = numbers(module_, c_.positions);
    if (!c_.segments.empty()) segments_ = numbers(module_, c_.segments);
    put(offsetof(Tile, a_step), w_.number(c_.a_depth == 1 ? c_.a_row : c_.a_depth));
    put(offsetof(Tile, b_step), w_.number(c_.b_depth));
    put(offsetof(Tile, c_step), w_.number(c_.ldc));
    put(offsetof(Tile, tail), w_.number(c_.tail));
    w_.loop(function_->getArg(1), function_->getArg(2), [&](Value* number) { job(number); });
    b_.CreateRetVoid();
    return function_;
  }

 private:
  void put(size_t field, Value* value) { b_.CreateStore(value, w_.at(tile_, static_cast<int64_t>(field))); }
  Value* buffer(uint32_t i) { return b_.CreateLoad(b_.getPtrTy(), w_.at(buffers_, int64_t{8} * i)); }
  Value* element(Value* table, Value* i) {
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), table, i));
  }
  /// x * y / z, for parts of a range.
  Value* share(int64_t range, Value* i, int64_t parts) { return b_.CreateSDiv(w_.times(i, range), w_.number(parts)); }

  void job(Value* number) {
    Value* const piece = b_.CreateSRem(number, w_.number(c_.column_parts));
    Value* const rest = b_.CreateSDiv(number, w_.number(c_.column_parts));
    Value* const chunk = b_.CreateSRem(rest, w_.number(c_.chunks));
    batch_ = w_.times(b_.CreateSDiv(rest, w_.number(c_.chunks)), c_.shared);
    const int64_t all = c_.tiles * c_.shared;
    first_tile_ = share(all, chunk, c_.chunks);
    last_tile_ = share(all, w_.add(chunk, w_.number(1)), c_.chunks);
    first_panel_ = share(c_.panels, piece, c_.column_parts);
    last_panel_ = share(c_.panels, w_.add(piece, w_.number(1)), c_.column_parts);
    Value* const any =
        b_.CreateAnd(b_.CreateICmpSLT(first_tile_, last_tile_), b_.CreateICmpSLT(first_panel_, last_panel_));
    w_.branch(any, [&] {
      Value* const worker = b_.CreateSExt(function_->getArg(3), b_.getInt64Ty());
      Value* const scratch =
          w_.at(buffer(c_.a_buffers + c_.b_buffers + 1), w_.times(worker, c_.a_scratch() + c_.b_scratch()));
      a_ = c_.a_packed ? packed_rows(scratch) : w_.at(buffer(0), c_.a_offset * c_.element_bytes);
      if (c_.packs_b) {
        b_base_ = packed_panels(w_.at(scratch, c_.a_scratch()));
      } else {
        Value* const at = element(b_at_, batch_);
        Value* const matrix = c_.b_packed ? w_.times(at, c_.b_matrix) : w_.add(at, w_.number(c_.b_offset));
        b_base_ = w_.at(buffer(c_.a_buffers), w_.times(matrix, c_.element_bytes));
      }
      c_base_ = buffer(c_.a_buffers + c_.b_buffers);
      if (c_.epilogue) {
        d_base_ = buffer(c_.a_buffers + c_.b_buffers + 2);
        put(offsetof(Tile, buffers), w_.at(buffers_, int64_t{8} * (c_.a_buffers + c_.b_buffers + 3)));
      }
      depth_blocks();
    });
  }

  /// Calls a packing kernel with the first `count` buffers from `from` on, and then `packed`.
  void pack(FunctionId id, uint32_t from, uint32_t count, Value* packed, Value* begin, Value* end) {
    Value* const places = w_.local(llvm::ArrayType::get(b_.getPtrTy(), count + 1));
    for (uint32_t i = 0; i < count; ++i) b_.CreateStore(buffer(from + i), w_.at(places, int64_t{8} * i));
    b_.CreateStore(packed, w_.at(places, int64_t{8} * count));
    b_.CreateCall(functions_[id], {places, begin, end});
  }

  Value* packed_rows(Value* scratch) {
    const int64_t units = (c_.rows + c_.a_pack_rows - 1) / c_.a_pack_rows;
    Value* const first = w_.times(first_tile_, c_.tile_rows);
    Value* const limit = w_.number(c_.rows);
    Value* const last = w_.times(last_tile_, c_.tile_rows);
    Value* const rows = b_.CreateSub(b_.CreateSelect(b_.CreateICmpSLT(last, limit), last, limit), first);
    Value* const begin =
        w_.add(w_.times(element(a_at_, batch_), units), b_.CreateSDiv(first, w_.number(c_.a_pack_rows)));
    const int64_t step = (c_.a_pack_rows == 1 ? c_.a_row : c_.a_tile) * c_.element_bytes;
    Value* const end =
        w_.add(begin, b_.CreateSDiv(w_.add(rows, w_.number(c_.a_pack_rows - 1)), w_.number(c_.a_pack_rows)));
    pack(c_.pack_a, 0, c_.a_buffers, w_.at(scratch, b_.CreateNeg(w_.times(begin, step))), begin, end);
    return scratch;
  }

  Value* packed_panels(Value* scratch) {
    Value* const matrix = element(b_at_, batch_);
    Value* const base = w_.at(scratch, b_.CreateNeg(w_.times(matrix, c_.b_matrix * c_.element_bytes)));
    if (c_.b_in_panels) {
      Value* const panels = w_.times(matrix, c_.panels);
      pack(c_.pack_b, c_.a_buffers, c_.b_buffers, base, w_.add(panels, first_panel_), w_.add(panels, last_panel_));
    } else {
      pack(c_.pack_b, c_.a_buffers, c_.b_buffers, base, matrix, w_.add(matrix, w_.number(1)));
    }
    return scratch;
  }

  void depth_blocks() {
    const auto count = static_cast<int64_t>(c_.segments.size());
    const int64_t blocks = c_.depth_blocks();
    w_.loop(w_.number(0), w_.number(blocks), [&](Value* k) {
      Value* const first = w_.times(k, c_.depth_block);
      const auto least = [&](int64_t most, Value* left) {
        return b_.CreateSelect(b_.CreateICmpSLT(left, w_.number(most)), left, w_.number(most));
      };
      if (segments_) {
        put(offsetof(Tile, depth), w_.number(c_.run));
        put(offsetof(Tile, segments), least(c_.run_block, b_.CreateSub(w_.number(count), w_.times(k, c_.run_block))));
        put(offsetof(Tile, offsets), b_.CreateGEP(b_.getInt64Ty(), segments_, w_.times(k, c_.run_block)));
      } else {
        put(offsetof(Tile, depth), least(c_.depth_block, b_.CreateSub(w_.number(c_.depth), first)));
      }
      put(offsetof(Tile, accumulate), b_.CreateZExt(b_.CreateICmpNE(k, w_.number(0)), b_.getInt64Ty()));
      Value* const is_last = b_.CreateICmpEQ(k, w_.number(blocks - 1));
      w_.loop(first_panel_, last_panel_, [&](Value* j) {
        Value* const at = c_.b_in_panels ? w_.times(w_.add(w_.times(j, c_.depth), first), c_.panel)
                                         : w_.add(w_.times(first, c_.b_depth), w_.times(j, c_.panel));
        put(offsetof(Tile, b), w_.at(b_base_, w_.times(at, c_.element_bytes)));
        panel(w_.times(j, c_.panel), segments_ ? w_.number(0) : w_.times(first, c_.a_depth), is_last);
      });
    });
  }

  void panel(Value* column, Value* a_depth_at, Value* is_last_block) {
    Value* const last_column = c_.last_columns == 0
                                   ? b_.getFalse()
                                   : b_.CreateICmpSGT(w_.add(column, w_.number(c_.panel)), w_.number(c_.columns));
    put(offsetof(Tile, column), column);
    w_.loop(first_tile_, last_tile_, [&](Value* n) {
      Value* const i = b_.CreateSRem(n, w_.number(c_.tiles));
      Value* const batch = w_.add(batch_, b_.CreateSDiv(n, w_.number(c_.tiles)));
      Value* const last_row = c_.last_rows == 0 ? b_.getFalse() : b_.CreateICmpEQ(i, w_.number(c_.tiles - 1));
      Value* const row = w_.times(i, c_.tile_rows);
      Value* const c = w_.times(w_.add(w_.add(element(c_at_, batch), w_.times(row, c_.ldc)), column), c_.element_bytes);
      Value* const a = c_.a_packed ? w_.times(b_.CreateSub(i, first_tile_), c_.a_tile)
                                   : w_.add(element(a_at_, batch), w_.times(i, c_.a_tile));
      put(offsetof(Tile, a), w_.at(a_, w_.times(w_.add(a, a_depth_at), c_.element_bytes)));
      put(offsetof(Tile, c), w_.at(c_base_, c));
      if (d_base_) put(offsetof(Tile, d), w_.at(d_base_, c));
      put(offsetof(Tile, row), row);
      put(offsetof(Tile, rows), b_.CreateSelect(last_row, w_.number(c_.last_rows), w_.number(c_.tile_rows)));
      if (positions_) {
        put(offsetof(Tile, position),
            b_.CreateGEP(b_.getInt64Ty(), positions_, w_.times(batch, static_cast<int64_t>(c_.batch_rank))));
      }
      for (int r = 0; r < 2; ++r) {
        for (int k = 0; k < 2; ++k) {
          if (c_.micro[r][k] == kNoFunction) continue;
          Value* const mine = b_.CreateAnd(b_.CreateICmpEQ(last_row, b_.getInt1(r == 1)),
                                           b_.CreateICmpEQ(last_column, b_.getInt1(k == 1)));
          w_.branch(mine, [&] { b_.CreateCall(functions_[c_.micro[r][k]], {tile_}); });
        }
      }
      for (int k = 0; k < 2; ++k) {
        if (c_.after[k] == kNoFunction) continue;
        Value* const mine = b_.CreateAnd(is_last_block, b_.CreateICmpEQ(last_column, b_.getInt1(k == 1)));
        w_.branch(mine, [&] { b_.CreateCall(functions_[c_.after[k]], {tile_}); });
      }
    });
  }

  const MatmulCall& c_;
  const Functions& functions_;
  llvm::Module& module_;
  llvm::Function* function_;
  FunctionWriter w_;
  llvm::IRBuilder<>& b_;
  Value *buffers_ = nullptr, *tile_ = nullptr, *batch_ = nullptr, *first_tile_ = nullptr, *last_tile_ = nullptr;
  Value *first_panel_ = nullptr, *last_panel_ = nullptr;
  Value *a_ = nullptr, *b_base_ = nullptr, *c_base_ = nullptr, *d_base_ = nullptr;
  Value *a_at_ = nullptr, *b_at_ = nullptr, *c_at_ = nullptr, *positions_ = nullptr, *segments_ = nullptr;
};

/// The function of a plan.
class EntryWriter final : public StepsWriter {
 public:
  EntryWriter(const PlannedProgram& program, const CompileOptions& options, llvm::Module& module, const Target& target)
      : StepsWriter(
            llvm::Function::Create(pointer_function(module.getContext()), llvm::Function::ExternalLinkage, "", module),
            target),
        plan_(program.plan),
        target_(target),
        module_(module) {
    for (const FunctionSource& source : program.sources) {
      emit_function(source, module, target);
      functions_.push_back(module.getFunction(source.name));
      functions_.back()->setLinkage(llvm::Function::InternalLinkage);
      functions_.back()->setName("own." + source.name);  // no name that the caller may choose
    }
    for (const MatmulCall& call : plan_.matmuls)
      matmuls_.push_back(MatmulWriter(call, functions_, module, target).run());
    const uint32_t own = workspace_slot(plan_) + 1;
    for (uint32_t i = 0; i < own; ++i) slots_.push_back(slot(i));
    slots_.push_back(options.embed_constants ? constants() : slot(own));
    if (target.threads > 1) threads_ = slot(own + 1);
  }

  void run() {
    steps(plan_.steps);
    b_.CreateRetVoid();
  }

  /// INVALID_ARGUMENT for the name of a function that the code calls.
  Status give_name(const std::string& name) {
    if (module_.getNamedValue(name)) return {COLLET_INVALID_ARGUMENT, "'" + name + "' is a function of the C library"};
    function_->setName(name);
    return {};
  }

 private:
  Value* slot(uint32_t i) { return b_.CreateLoad(b_.getPtrTy(), w_.at(function_->getArg(0), int64_t{8} * i)); }

  Value* constants() {
    const llvm::StringRef bytes(plan_.constants.data(), plan_.constants.size());
    llvm::Constant* const data = llvm::ConstantDataArray::getString(module_.getContext(), bytes, false);
    auto* const global =
        new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
    global->setAlignment(llvm::Align(64));
    return global;
  }

  Value* place(const Step& step, uint32_t i) override {
    const Place& p = plan_.places[step.first_place + i];
    return w_.at(slots_[p.slot], static_cast<int64_t>(p.offset));
  }

  static uint32_t most_places(const StepList& list) {
    uint32_t most = 1;
    for (const Step& step : list) {
      most = std::max(most, step.places);
      for (const StepList& children : step.children) most = std::max(most, most_places(children));
    }
    return most;
  }

  /// The addresses of a step's places, where those of the step before were.
  Value* places(const Step& step) {
    if (!table_) table_ = w_.local(llvm::ArrayType::get(b_.getPtrTy(), most_places(plan_.steps)));
    for (uint32_t i = 0; i < step.places; ++i) b_.CreateStore(place(step, i), w_.at(table_, int64_t{8} * i));
    return table_;
  }

  void kernel(const Step& step) override {
    const KernelCall& call = step.kernel;
    Value* const table = places(step);
    const auto whole = [&] { b_.CreateCall(functions_[call.function], {table, w_.number(0), w_.number(call.range)}); };
    if (call.parallel && call.range > 1) {
      share(call.cost_ns, part_of(call.function), table, call.range, call.grain, whole);
    } else {
      whole();
    }
    if (call.tail == kNoFunction) return;
    Value* const rest = w_.at(table, int64_t{8} * call.tail_place);
    b_.CreateCall(functions_[call.tail], {rest, w_.number(0), w_.number(call.tail_range)});
  }

  void matmul(const Step& step) override {
    const MatmulCall& call = plan_.matmuls[step.call];
    const int64_t jobs = call.batches / call.shared * call.chunks * call.column_parts;
    Value* const table = places(step);
    share(call.cost_ns, matmuls_[step.call], table, jobs, 1,
          [&] { b_.CreateCall(matmuls_[step.call], {table, w_.number(0), w_.number(jobs), b_.getInt32(0)}); });
  }

  /// Lets the caller's threads share [0, range), where that pays and there are any; else it is done by `whole`.
  void share(double cost_ns, llvm::Function* part, Value* table, int64_t range, int64_t grain,
             const std::function<void()>& whole) {
    if (!threads_ || range < 2 || cost_ns < target_.wake_ns) return whole();
    llvm::BasicBlock *many = w_.block("shared"), *one = w_.block("alone"), *after = w_.block("after");
    b_.CreateCondBr(b_.CreateIsNull(threads_), one, many);
    b_.SetInsertPoint(many);
    llvm::Type *const pointer = b_.getPtrTy(), *const number = b_.getInt64Ty();
    auto* const type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, number, number, pointer, pointer}, false);
    Value* const loop = b_.CreateLoad(pointer, threads_);
    Value* const user = b_.CreateLoad(pointer, w_.at(threads_, int64_t{8}));
    b_.CreateCall(type, loop, {user, w_.number(range), w_.number(grain), part, table});
    b_.CreateBr(after);
    b_.SetInsertPoint(one);
    whole();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  /// A kernel as a part function.
  llvm::Function* part_of(FunctionId id) {
    llvm::Function*& made = parts_[id];
    if (made) return made;
    made =
        llvm::Function::Create(part_function(module_.getContext()), llvm::Function::InternalLinkage, "part", module_);
    FunctionWriter writer(made, target_);
    writer.b.CreateCall(functions_[id], {made->getArg(0), made->getArg(1), made->getArg(2)});
    writer.b.CreateRetVoid();
    return made;
  }

  const LaunchPlan& plan_;
  const Target& target_;
  llvm::Module& module_;
  std::vector<llvm::Function*> functions_, matmuls_;
  std::map<FunctionId, llvm::Function*> parts_;
  std::vector<Value*> slots_;
  Value* table_ = nullptr;    ///< addresses of the places of the step that runs
  Value* threads_ = nullptr;  ///< address of what the caller shares loops with; may be null in a run
};

}  // namespace

Status emit_entry(const PlannedProgram& program, const CompileOptions& options, llvm::Module& module,
                  const Target& target) {
  if (!program.plan.routines.empty()) {
    return {COLLET_UNIMPLEMENTED,
            std::string("no code is made ahead of time for ") + collet_op_name(program.plan.routines[0].opcode)};
  }
  EntryWriter writer(program, options, module, target);
  writer.run();
  return writer.give_name(options.name);
}

}  // namespace collet::codegen
