// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/product/emit_product.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/llvm/emit_steps.h"
#include "sdk/codegen/llvm/kernel/emit.h"
#include "sdk/codegen/matmul/blocked_loops.h"

namespace collet::codegen {
namespace {

using llvm::Value;

Value* numbers(llvm::Module& module, const std::vector<int64_t>& values) {
  llvm::Constant* const data = llvm::ConstantDataArray::get(module.getContext(), values);
  return new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
}

/// A Machine for BlockedLoops that emits code.
class ProductWriter {
 public:
  using Table = std::vector<int64_t> BlockedProduct::*;
  /// A number, an address or a flag as an LLVM value, with operators. What is known is not computed, so that there is little code for a
  /// small product.
  struct Word {
    llvm::IRBuilder<>* b = nullptr;
    Value* v = nullptr;
    /// Returns its value if that is known.
    std::optional<int64_t> known() const {
      const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(v);
      if (!constant) return std::nullopt;
      return constant->getBitWidth() == 1 ? static_cast<int64_t>(constant->getZExtValue()) : constant->getSExtValue();
    }
    Word same(int64_t x) const { return {b, llvm::ConstantInt::getSigned(b->getInt64Ty(), x)}; }
    Word operator+(Word x) const {
      if (x.known() == 0) return *this;
      if (v->getType()->isPointerTy()) return {b, b->CreateGEP(b->getInt8Ty(), v, x.v)};
      return known() == 0 ? x : Word{b, b->CreateAdd(v, x.v)};
    }
    Word operator-(Word x) const { return *this + Word{b, b->CreateNeg(x.v)}; }
    Word operator+(int64_t x) const { return *this + same(x); }
    Word operator*(int64_t x) const { return x == 1 ? *this : x == 0 ? same(0) : Word{b, b->CreateMul(v, same(x).v)}; }
    Word operator/(int64_t x) const { return x == 1 ? *this : Word{b, b->CreateSDiv(v, same(x).v)}; }
    Word operator%(int64_t x) const { return x == 1 ? same(0) : Word{b, b->CreateSRem(v, same(x).v)}; }
    Word operator<(Word x) const { return {b, b->CreateICmpSLT(v, x.v)}; }
    Word operator>(int64_t x) const { return {b, b->CreateICmpSGT(v, same(x).v)}; }
    Word operator==(int64_t x) const { return {b, b->CreateICmpEQ(v, same(x).v)}; }
  };
  using Number = Word;
  using Address = Word;
  using Flag = Word;

  ProductWriter(const BlockedProduct& product, llvm::Module& module, const Target& target, const std::string& name)
      : c_(product),
        module_(module),
        function_(llvm::Function::Create(kernel_function(module.getContext()), llvm::Function::ExternalLinkage, name,
                                         module)),
        w_(function_, target),
        b_(w_.b) {}

  void run() {
    // The time is spent in the functions that it calls.
    function_->addFnAttr(llvm::Attribute::OptimizeNone);
    function_->addFnAttr(llvm::Attribute::NoInline);
    tile_ = w_.local(llvm::ArrayType::get(b_.getInt8Ty(), sizeof(Tile)));
    Value* const worker = b_.CreateSExt(function_->getArg(3), b_.getInt64Ty());
    BlockedLoops<ProductWriter>(c_, *this).jobs(of(function_->getArg(1)), of(function_->getArg(2)), of(worker));
    b_.CreateRetVoid();
  }

  Number number(int64_t x) { return of(w_.number(x)); }
  Number least(Number x, Number y) { return choose(x < y, x, y); }
  Number most(Number x, Number y) { return choose(x < y, y, x); }
  Number choose(Flag which, int64_t x, int64_t y) { return choose(which, number(x), number(y)); }
  Word choose(Flag which, Word x, Word y) {
    if (const auto known = which.known()) return *known != 0 ? x : y;
    return of(b_.CreateSelect(which.v, x.v, y.v));
  }
  Flag no() { return of(b_.getFalse()); }
  Flag either(Flag x, Flag y) { return of(b_.CreateOr(x.v, y.v)); }
  Flag both(Flag x, Flag y) {
    if (const auto known = x.known()) return *known != 0 ? y : x;
    if (const auto known = y.known()) return *known != 0 ? x : y;
    return of(b_.CreateAnd(x.v, y.v));
  }
  Flag flag(uint32_t i) { return of(b_.CreateICmpNE(b_.CreateLoad(b_.getInt8Ty(), buffer(i).v), b_.getInt8(0))); }
  void clear_bits() {
    if (!bits_) bits_ = w_.local(b_.getInt32Ty());
    b_.CreateStore(b_.getInt32(0), bits_);
  }
  /// Collects the bits of elements [begin, end) of 32 bits.
  void collect_bits(Address first, Number begin, Number end) {
    w_.loop(begin.v, end.v, [&](Value* i) {
      Value* const element = b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), first.v, i));
      b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), bits_), element), bits_);
    });
  }
  Flag has_no_bits() { return of(b_.CreateICmpEQ(b_.CreateLoad(b_.getInt32Ty(), bits_), b_.getInt32(0))); }
  Number element(Table table, Number i) {
    if (const auto known = i.known()) return number((c_.*table)[static_cast<size_t>(*known)]);
    return of(b_.CreateLoad(b_.getInt64Ty(), elements(table, i).v));
  }
  Address elements(Table table, Number i) {
    auto found = std::find_if(tables_.begin(), tables_.end(), [&](const auto& t) { return t.first == table; });
    if (found == tables_.end()) found = tables_.insert(found, {table, numbers(module_, c_.*table)});
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
    const auto first = begin.known(), last = end.known();
    if (first && last && *last - *first <= 1) {
      if (*first < *last) body(begin);
      return;
    }
    w_.loop(begin.v, end.v, [&](Value* i) { body(of(i)); });
  }
  template <typename Body>
  void when(Flag condition, const Body& body) {
    if (const auto known = condition.known()) {
      if (*known != 0) body();
      return;
    }
    w_.branch(condition.v, body);
  }
  void compute(Flag last_row, Flag last_column) {
    for (int r = 0; r < 2; ++r) {
      for (int k = 0; k < 2; ++k) call(c_.micro[r][k], both(is(last_row, r), is(last_column, k)));
    }
  }
  void fold(Flag last_column) {
    for (int k = 0; k < 2; ++k) call(c_.fold[k], is(last_column, k));
  }
  void finish(Flag is_last_block, Flag last_column) {
    for (int k = 0; k < 2; ++k) call(c_.after[k], both(is_last_block, is(last_column, k)));
  }
  /// Emits a call of a packing kernel. Its buffers are `count` addresses from place `from` on, followed by `packed`.
  void pack(const std::string& name, uint32_t from, uint32_t count, Address packed, Number begin, Number end) {
    Value* const places = w_.local(llvm::ArrayType::get(b_.getPtrTy(), count + 1));
    for (uint32_t i = 0; i < count; ++i) b_.CreateStore(buffer(from + i).v, w_.at(places, int64_t{8} * i));
    b_.CreateStore(packed.v, w_.at(places, int64_t{8} * count));
    call_kernel(name, places, begin.v, end.v);
  }
  void copy(Address from, Address to, Number steps) {
    Value* const places = w_.local(llvm::ArrayType::get(b_.getPtrTy(), 2));
    b_.CreateStore(from.v, places);
    b_.CreateStore(to.v, w_.at(places, int64_t{8}));
    call_kernel(c_.copy_b, places, w_.number(0), steps.v);
  }

 private:
  Word of(Value* v) { return {&b_, v}; }
  Flag is(Flag flag, int value) { return value ? flag : of(b_.CreateNot(flag.v)); }
  void call(const std::string& name, Flag condition) {
    if (name.empty()) return;
    const llvm::FunctionCallee callee = module_.getOrInsertFunction(name, pointer_function(module_.getContext()));
    when(condition, [&] { b_.CreateCall(callee, {tile_}); });
  }
  void call_kernel(const std::string& name, Value* places, Value* begin, Value* end) {
    const llvm::FunctionCallee callee = module_.getOrInsertFunction(name, kernel_function(module_.getContext()));
    b_.CreateCall(callee, {places, begin, end, b_.getInt32(0)});
  }

  const BlockedProduct& c_;
  llvm::Module& module_;
  llvm::Function* function_;
  FunctionWriter w_;
  llvm::IRBuilder<>& b_;
  Value* tile_ = nullptr;
  Value* bits_ = nullptr;                         ///< the bits that a check has collected
  std::vector<std::pair<Table, Value*>> tables_;  ///< the tables that are read
};

}  // namespace

void emit_product(const BlockedProduct& product, llvm::Module& module, const Target& target, const std::string& name) {
  ProductWriter(product, module, target, name).run();
}

}  // namespace collet::codegen
