// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/emit_entry.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <functional>
#include <map>

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/launch/matmul_loops.h"
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

/// Returns the type of the functions that threads share: void part(char* const* buffers, int64_t begin, int64_t end,
/// int32_t worker).
llvm::FunctionType* part_function(llvm::LLVMContext& context) {
  llvm::Type* const number = llvm::Type::getInt64Ty(context);
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                 {llvm::PointerType::get(context, 0), number, number, llvm::Type::getInt32Ty(context)},
                                 false);
}

/// A Machine for MatmulLoops that emits code: a function whose parameters are the addresses of a product's places and a
/// range of its jobs.
class MatmulWriter {
 public:
  using Functions = std::vector<llvm::Function*>;
  using Table = std::vector<int64_t> MatmulCall::*;
  /// A number, an address or a flag as an LLVM value, with operators.
  struct Word {
    llvm::IRBuilder<>* b = nullptr;
    Value* v = nullptr;
    Word same(int64_t x) const { return {b, llvm::ConstantInt::getSigned(b->getInt64Ty(), x)}; }
    Word operator+(Word x) const {
      return {b, v->getType()->isPointerTy() ? b->CreateGEP(b->getInt8Ty(), v, x.v) : b->CreateAdd(v, x.v)};
    }
    Word operator-(Word x) const { return *this + Word{b, b->CreateNeg(x.v)}; }
    Word operator+(int64_t x) const { return *this + same(x); }
    Word operator*(int64_t x) const { return {b, b->CreateMul(v, same(x).v)}; }
    Word operator/(int64_t x) const { return {b, b->CreateSDiv(v, same(x).v)}; }
    Word operator%(int64_t x) const { return {b, b->CreateSRem(v, same(x).v)}; }
    Word operator<(Word x) const { return {b, b->CreateICmpSLT(v, x.v)}; }
    Word operator>(int64_t x) const { return {b, b->CreateICmpSGT(v, same(x).v)}; }
    Word operator==(int64_t x) const { return {b, b->CreateICmpEQ(v, same(x).v)}; }
  };
  using Number = Word;
  using Address = Word;
  using Flag = Word;

  MatmulWriter(const MatmulCall& call, const Functions& functions, llvm::Module& module, const Target& target)
      : c_(call),
        functions_(functions),
        module_(module),
        function_(llvm::Function::Create(part_function(module.getContext()), llvm::Function::InternalLinkage, "matmul",
                                         module)),
        w_(function_, target),
        b_(w_.b) {}

  llvm::Function* run() {
    tile_ = w_.local(llvm::ArrayType::get(b_.getInt8Ty(), sizeof(Tile)));
    for (const Table table : {&MatmulCall::a_at, &MatmulCall::b_at, &MatmulCall::c_at, &MatmulCall::start_at,
                              &MatmulCall::positions, &MatmulCall::segments, &MatmulCall::first_step,
                              &MatmulCall::end_step, &MatmulCall::first_column, &MatmulCall::end_column}) {
      if (!(c_.*table).empty()) tables_.emplace_back(table, numbers(module_, c_.*table));
    }
    Value* const worker = b_.CreateSExt(function_->getArg(3), b_.getInt64Ty());
    MatmulLoops<MatmulWriter>(c_, *this).jobs(of(function_->getArg(1)), of(function_->getArg(2)), of(worker));
    b_.CreateRetVoid();
    return function_;
  }

  Number number(int64_t x) { return of(w_.number(x)); }
  static bool uses_parts(const MatmulCall& call) { return !call.first_step.empty() && !call.checks_parts; }
  Number least(Number x, Number y) { return of(b_.CreateSelect((x < y).v, x.v, y.v)); }
  Number most(Number x, Number y) { return of(b_.CreateSelect((x < y).v, y.v, x.v)); }
  Number choose(Flag which, int64_t x, int64_t y) { return of(b_.CreateSelect(which.v, w_.number(x), w_.number(y))); }
  Address choose(Flag which, Address x, Address y) { return of(b_.CreateSelect(which.v, x.v, y.v)); }
  Flag no() { return of(b_.getFalse()); }
  Flag either(Flag x, Flag y) { return of(b_.CreateOr(x.v, y.v)); }
  Number element(Table table, Number i) { return of(b_.CreateLoad(b_.getInt64Ty(), elements(table, i).v)); }
  Address elements(Table table, Number i) {
    const auto found = std::find_if(tables_.begin(), tables_.end(), [&](const auto& t) { return t.first == table; });
    return of(b_.CreateGEP(b_.getInt64Ty(), found->second, i.v));
  }
  Address buffer(uint32_t i) { return of(b_.CreateLoad(b_.getPtrTy(), buffers(i).v)); }
  Address buffers(uint32_t i) { return of(function_->getArg(0)) + int64_t{8} * i; }
  template <typename Field, typename What>
  void put(Field Tile::* field, What value) {
    static constexpr Tile kTile{};
    const auto at = reinterpret_cast<const char*>(&(kTile.*field)) - reinterpret_cast<const char*>(&kTile);
    b_.CreateStore(value.v, w_.at(tile_, at));
  }
  template <typename Body>
  void loop(Number begin, Number end, const Body& body) {
    w_.loop(begin.v, end.v, [&](Value* i) { body(of(i)); });
  }
  template <typename Body>
  void when(Flag condition, const Body& body) {
    w_.branch(condition.v, body);
  }
  void compute(Flag last_row, Flag last_column) {
    for (int r = 0; r < 2; ++r) {
      for (int k = 0; k < 2; ++k) call(c_.micro[r][k], is(last_row, r), is(last_column, k));
    }
  }
  void fold(Flag last_column) {
    for (int k = 0; k < 2; ++k) call(c_.fold[k], b_.getTrue(), is(last_column, k));
  }
  void finish(Flag is_last_block, Flag last_column) {
    for (int k = 0; k < 2; ++k) call(c_.after[k], is_last_block.v, is(last_column, k));
  }
  /// Emits a call of a packing kernel. Its buffers are `count` addresses from place `from` on, followed by `packed`.
  void pack(FunctionId id, uint32_t from, uint32_t count, Address packed, Number begin, Number end) {
    Value* const places = w_.local(llvm::ArrayType::get(b_.getPtrTy(), count + 1));
    for (uint32_t i = 0; i < count; ++i) b_.CreateStore(buffer(from + i).v, w_.at(places, int64_t{8} * i));
    b_.CreateStore(packed.v, w_.at(places, int64_t{8} * count));
    b_.CreateCall(functions_[id], {places, begin.v, end.v});
  }
  void copy(Address from, Address to, Number steps) {
    Value* const places = w_.local(llvm::ArrayType::get(b_.getPtrTy(), 2));
    b_.CreateStore(from.v, places);
    b_.CreateStore(to.v, w_.at(places, int64_t{8}));
    b_.CreateCall(functions_[c_.copy_b], {places, w_.number(0), steps.v});
  }

 private:
  Word of(Value* v) { return {&b_, v}; }
  Value* is(Flag flag, int value) { return value ? flag.v : b_.CreateNot(flag.v); }
  void call(FunctionId id, Value* one, Value* other) {
    if (id == kNoFunction) return;
    w_.branch(b_.CreateAnd(one, other), [&] { b_.CreateCall(functions_[id], {tile_}); });
  }

  const MatmulCall& c_;
  const Functions& functions_;
  llvm::Module& module_;
  llvm::Function* function_;
  FunctionWriter w_;
  llvm::IRBuilder<>& b_;
  Value* tile_ = nullptr;
  std::vector<std::pair<Table, Value*>> tables_;
};

/// Emits the function that runs a launch plan.
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
      // A name with a dot cannot clash with the C name that the caller chooses.
      functions_.back()->setName("own." + source.name);
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

  /// Sets the name of the function. Returns INVALID_ARGUMENT if the code calls a function of that name.
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

  /// Stores the addresses of a step's places in a table, which all steps share, and returns it.
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
    const int64_t jobs = call.jobs();
    Value* const table = places(step);
    share(call.cost_ns, matmuls_[step.call], table, jobs, 1,
          [&] { b_.CreateCall(matmuls_[step.call], {table, w_.number(0), w_.number(jobs), b_.getInt32(0)}); });
  }

  void blocks(const Step& step) override {
    const KernelCall& call = step.kernel;
    uint32_t count = 0;
    for (const Step& one : step.children[0]) count += one.places;
    Value* const table = w_.local(llvm::ArrayType::get(b_.getPtrTy(), count));
    uint32_t next = 0;
    for (const Step& one : step.children[0]) {
      for (uint32_t i = 0; i < one.places; ++i) b_.CreateStore(place(one, i), w_.at(table, int64_t{8} * next++));
    }
    llvm::Function* const part = block_function(step.children[0]);
    const auto whole = [&] { b_.CreateCall(part, {table, w_.number(0), w_.number(call.range), b_.getInt32(0)}); };
    if (!call.parallel) return whole();
    share(call.cost_ns, part, table, call.range, 1, whole);
  }

  /// Returns the part function that runs steps for blocks of rows. Its table has the places of all steps, in order.
  llvm::Function* block_function(const StepList& list) {
    auto* const function =
        llvm::Function::Create(part_function(module_.getContext()), llvm::Function::InternalLinkage, "blocks", module_);
    FunctionWriter w(function, target_);
    Value* const worker = w.b.CreateSExt(function->getArg(3), w.b.getInt64Ty());
    Value* const own = w.local(llvm::ArrayType::get(w.b.getPtrTy(), kMostBlockPlaces));
    w.loop(function->getArg(1), function->getArg(2), [&](Value* block) {
      Value* const ahead = w.b.CreateSub(worker, block);
      Value* const end = w.add(block, w.number(1));
      uint32_t next = 0;
      for (const Step& step : list) {
        for (uint32_t i = 0; i < step.places; ++i) {
          Value* const address = w.b.CreateLoad(w.b.getPtrTy(), w.at(function->getArg(0), int64_t{8} * next++));
          const auto bytes = static_cast<int64_t>(step.block_bytes[i]);
          w.b.CreateStore(bytes == 0 ? address : w.at(address, w.times(ahead, bytes)), w.at(own, int64_t{8} * i));
        }
        if (step.kind == StepKind::kMatmul) {
          w.b.CreateCall(matmuls_[step.call], {own, block, end, function->getArg(3)});
        } else {
          w.b.CreateCall(functions_[step.kernel.function], {own, block, end});
        }
      }
    });
    w.b.CreateRetVoid();
    return function;
  }

  /// Emits a parallel loop over [0, range) that the caller's threads share, if the work is large enough and the caller
  /// has threads. Otherwise the code of `whole` runs.
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

  /// Returns the part function that runs a kernel.
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
  Value* table_ = nullptr;    ///< table with the addresses of the current step's places
  Value* threads_ = nullptr;  ///< address of the caller's SharedLoops; may be null when the program runs
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
