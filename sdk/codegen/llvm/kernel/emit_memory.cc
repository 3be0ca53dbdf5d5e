// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/kernel/emit_memory.h"

#include <collet/types.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <string>

namespace collet::codegen {
namespace {

using llvm::Type;
using llvm::Value;

bool is_complex(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_COMPLEX;
}

llvm::Align align_of(Type* t) {
  return llvm::Align(std::max<unsigned>(1, t->getScalarSizeInBits() / 8));
}

Value* address(Ir& ir, Value* base, Type* element, Value* index) {
  return ir.b.CreateGEP(element, base, index);
}

Value* times(Ir& ir, Value* index, uint64_t k) {
  return k == 1 ? index : ir.b.CreateMul(index, ir.constant_int(index->getType(), k));
}

/// Loads one element, or the real or imaginary part of a complex one, if the i1 `mask` is true or null.
Value* load_scalar(Ir& ir, Value* base, Type* st, Value* index, Value* mask) {
  Value* p = address(ir, base, st, index);
  if (mask) p = ir.b.CreateSelect(mask, p, base);
  Value* v = ir.b.CreateAlignedLoad(st, p, align_of(st));
  return mask ? ir.b.CreateSelect(mask, v, llvm::Constant::getNullValue(st)) : v;
}

/// Returns n if `mask` is a constant that is true in the first n lanes and no others, and Ir::uses_short_vectors is
/// set; else 0.
int first_lanes_of(const Ir& ir, const Value* mask) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (!constant || !ir.uses_short_vectors || ir.is_scalable()) return 0;
  int n = 0;
  for (int i = 0; i < ir.lanes_of(constant); ++i) {
    const llvm::Constant* const lane = constant->getAggregateElement(static_cast<unsigned>(i));
    if (!lane || (!lane->isOneValue() && !lane->isNullValue())) return 0;
    if (lane->isOneValue() && n++ != i) return 0;
  }
  return n;
}

/// True if the target loads vectors of such elements with a mask by one instruction. Elsewhere LLVM tests each lane, and loads it alone.
bool has_masked_loads(const Target& target, Type* element) {
  if (target.masks || target.has_grid()) return true;
  return element->getScalarSizeInBits() >= 32 && target.features.find("+avx") != std::string::npos;
}

/// Loads with a mask for which there is no instruction. In most vectors, such as those within an image with a border, all lanes are true.
Value* load_mostly_whole(Ir& ir, Value* p, Type* vt, Value* mask) {
  Value* loaded[2] = {};
  llvm::BasicBlock* ends[2] = {};
  const auto end_with = [&](size_t i, Value* v) {
    loaded[i] = v;
    ends[i] = ir.b.GetInsertBlock();
  };
  ir.choose(
      ir.b.CreateAndReduce(mask), [&] { end_with(0, ir.b.CreateAlignedLoad(vt, p, align_of(vt))); },
      [&] { end_with(1, ir.b.CreateMaskedLoad(vt, p, align_of(vt), mask, llvm::Constant::getNullValue(vt))); });
  llvm::PHINode* const v = ir.b.CreatePHI(vt, 2);
  for (size_t i = 0; i < 2; ++i) v->addIncoming(loaded[i], ends[i]);
  return v;
}

Value* load_run(Ir& ir, Value* p, Type* vt, Value* mask, int64_t aligned = 1) {
  const llvm::Align align(align_of(vt).value() * static_cast<uint64_t>(aligned));
  if (!mask) return ir.b.CreateAlignedLoad(vt, p, align);
  if (const int n = first_lanes_of(ir, mask)) {
    Value* const part = ir.b.CreateAlignedLoad(ir.wide(vt->getScalarType(), n), p, align_of(vt));
    std::vector<int> order;
    for (int i = 0; i < ir.lanes_of(mask); ++i) order.push_back(std::min(i, n));
    if (n > 1) return ir.b.CreateShuffleVector(part, llvm::Constant::getNullValue(part->getType()), order);
    return ir.b.CreateInsertElement(llvm::Constant::getNullValue(vt), part, uint64_t{0});
  }
  if (!ir.is_scalable() && !llvm::isa<llvm::Constant>(mask) && !has_masked_loads(ir.target, vt))
    return load_mostly_whole(ir, p, vt, mask);
  return ir.b.CreateMaskedLoad(vt, p, align_of(vt), mask, llvm::Constant::getNullValue(vt));
}

Value* all_lanes(Ir& ir, int count) {
  return llvm::Constant::getAllOnesValue(ir.wide(ir.b.getInt1Ty(), count));
}

/// Whether the lanes have a constant stride and all their offsets fit in 32 bits.
bool in_steps(const Ir& ir, const Lanes& where) {
  return !ir.is_scalable() && !where.vec && std::abs(where.stride) < (int64_t{1} << 28) / where.count;
}

/// Returns a vector of the addresses of lanes with a constant stride: that of the first lane plus constant offsets.
Value* step_addresses(Ir& ir, Value* base, Type* element, const Lanes& where) {
  return ir.b.CreateGEP(element, address(ir, base, element, where.scalar),
                        ir.steps(ir.b.getInt32Ty(), where.count, where.stride));
}

/// Returns a separate address for each lane of a gather or scatter access. The elements are then accessed one by one, because on
/// few processors gather and scatter instructions are faster.
std::vector<Value*> places_of_lanes(Ir& ir, Value* base, Type* element, const Lanes& where, uint64_t parts) {
  auto& b = ir.b;
  std::vector<Value*> places;
  Value* const first = address(ir, base, element, times(ir, where.scalar, parts));
  const auto step = static_cast<int64_t>(parts) * where.stride;
  if (!where.vec) {
    for (int i = 0; i < where.count; ++i)
      places.push_back(address(ir, first, element, b.getInt64(static_cast<uint64_t>(step * i))));
    return places;
  }
  Lanes distances = where;
  distances.scalar = b.getInt64(0);
  Value* const indices = times(ir, lane_indices(ir, distances), parts);
  for (int i = 0; i < where.count; ++i) {
    places.push_back(address(ir, first, element, b.CreateExtractElement(indices, static_cast<uint64_t>(i))));
  }
  return places;
}

/// Loads one element from each address, `offset` elements after it, and returns them as a vector.
Value* load_each(Ir& ir, const std::vector<Value*>& places, Type* element, uint64_t offset) {
  Value* all = llvm::PoisonValue::get(ir.wide(element, static_cast<int>(places.size())));
  for (size_t i = 0; i < places.size(); ++i) {
    Value* const p = address(ir, places[i], element, ir.b.getInt64(offset));
    all = ir.b.CreateInsertElement(all, ir.b.CreateAlignedLoad(element, p, align_of(element)), i);
  }
  return all;
}

void store_each(Ir& ir, const std::vector<Value*>& places, Type* element, Value* values, uint64_t offset) {
  for (size_t i = 0; i < places.size(); ++i) {
    Value* const p = address(ir, places[i], element, ir.b.getInt64(offset));
    ir.b.CreateAlignedStore(ir.b.CreateExtractElement(values, i), p, align_of(element));
  }
}

/// Loads lanes with a stride of at most Tuning::near_stride: loads all elements of their range with full vectors and selects the lanes with
/// shuffles. Lanes in which `mask` is false are not accessed; null means all lanes.
Value* load_near(Ir& ir, Value* base, Type* element, const Lanes& where, Value* mask) {
  auto& b = ir.b;
  const int n = where.count;
  const int step = static_cast<int>(std::abs(where.stride));
  const int span = step * (n - 1) + 1;
  Value* first = where.scalar;
  if (where.stride < 0) first = b.CreateAdd(first, b.getInt64(static_cast<uint64_t>(where.stride * (n - 1))));
  Value* const p = address(ir, base, element, first);
  const auto place_of = [&](int lane) { return where.stride < 0 ? step * (n - 1 - lane) : step * lane; };
  if (mask) {
    std::vector<int> order(static_cast<size_t>(step * n), n);  // the mask is false for elements between the lanes
    for (int i = 0; i < n; ++i) order[static_cast<size_t>(place_of(i))] = i;
    Value* const wide = b.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), order);
    Value* const all = load_run(ir, p, ir.wide(element, step * n), wide);
    std::vector<int> chosen;
    for (int i = 0; i < n; ++i) chosen.push_back(place_of(i));
    return b.CreateShuffleVector(all, chosen);
  }
  // Loads whole vectors. The last one overlaps the one before it, so that nothing beyond the last lane is read.
  Value* result = nullptr;
  for (int v = 0; v < step; ++v) {
    const int from = std::min(v * n, span - n);
    Value* const part = b.CreateAlignedLoad(
        ir.wide(element, n), address(ir, p, element, b.getInt64(static_cast<uint64_t>(from))), align_of(element));
    std::vector<int> order;
    for (int i = 0; i < n; ++i) {
      const int at = place_of(i);
      const bool mine = at >= v * n && at < (v + 1) * n;
      order.push_back(mine ? n + at - from : i);
    }
    result = b.CreateShuffleVector(result ? result : part, part, order);
  }
  return result;
}

/// Returns the distance of each lane from the first element, if the distances are constants; nothing otherwise.
std::vector<int64_t> constant_distances(const Lanes& where) {
  std::vector<int64_t> distances;
  const auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(where.vec);
  for (int i = 0; constant && i < where.count; ++i) {
    const auto* element =
        llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(static_cast<unsigned>(i)));
    if (!element) return {};
    distances.push_back(element->getSExtValue() + where.stride * i);
  }
  return distances;
}

/// Adjacent elements that are loaded at once: `count`, a power of two, from distance `first` on.
struct Piece {
  int64_t first;
  int64_t count;
};

/// Returns pieces of at most `longest` elements that cover all distances, and hold no element outside of the range of a
/// group of distances that are near each other. The last pieces of a group may overlap.
std::vector<Piece> cover(std::vector<int64_t> distances, int64_t longest) {
  std::sort(distances.begin(), distances.end());
  std::vector<Piece> pieces;
  for (size_t i = 0; i < distances.size();) {
    size_t last = i;
    while (last + 1 < distances.size() && distances[last + 1] - distances[i] < longest) ++last;
    const int64_t span = distances[last] - distances[i] + 1;
    const auto count = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(span)));
    pieces.push_back({distances[i], count});
    if (count < span) pieces.push_back({distances[i] + span - count, count});
    i = last + 1;
  }
  return pieces;
}

/// Loads elements at constant distances from `p`: loads a few pieces that hold all of them, and selects the lanes with
/// shuffles. Returns null if that takes too many pieces.
Value* load_pieces(Ir& ir, Value* p, Type* element, const std::vector<int64_t>& distances) {
  auto& b = ir.b;
  const auto n = static_cast<int64_t>(distances.size());
  const std::vector<Piece> pieces = cover(distances, n);
  if (pieces.size() > ir.target.tuning.combined_loads) return nullptr;
  Value* result = nullptr;
  for (const Piece& piece : pieces) {
    Value* const start = address(ir, p, element, b.getInt64(static_cast<uint64_t>(piece.first)));
    Value* const part = b.CreateAlignedLoad(ir.wide(element, static_cast<int>(piece.count)), start, align_of(element));
    std::vector<int> order;
    std::vector<int> chosen;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = distances[static_cast<size_t>(i)] - piece.first;
      order.push_back(static_cast<int>(std::clamp<int64_t>(at, 0, piece.count - 1)));
      chosen.push_back(static_cast<int>(at >= 0 && at < piece.count ? n + i : i));
    }
    // Both operands of a shuffle need the same length, so each piece is spread over all lanes first.
    Value* const spread = piece.count == 1 ? ir.splat(part, static_cast<int>(n)) : b.CreateShuffleVector(part, order);
    result = result ? b.CreateShuffleVector(result, spread, chosen) : spread;
  }
  return result;
}

constexpr uint64_t kZeros = 512;  ///< bytes

/// A constant array of zeros, from which masked-out loads can read.
Value* zeros(Ir& ir) {
  llvm::GlobalVariable* global = ir.module.getNamedGlobal("zeros");
  if (!global) {
    Type* t = llvm::ArrayType::get(ir.b.getInt8Ty(), kZeros);
    global = new llvm::GlobalVariable(ir.module, t, true, llvm::GlobalValue::PrivateLinkage,
                                      llvm::Constant::getNullValue(t), "zeros");
    global->setAlignment(llvm::Align(64));
  }
  return global;
}

}  // namespace

Value* lane_indices(Ir& ir, const Lanes& where) {
  if (where.count == 1) {
    return where.vec ? ir.b.CreateAdd(where.scalar, where.vec) : where.scalar;
  }
  Value* v = ir.splat(where.scalar, where.count);
  if (where.stride != 0) v = ir.b.CreateAdd(v, ir.steps(ir.b.getInt64Ty(), where.count, where.stride));
  return where.vec ? ir.b.CreateAdd(v, ir.splat(where.vec, where.count)) : v;
}

Val load_lanes(Ir& ir, Value* base, uint32_t type, const Lanes& where, Value* mask) {
  auto& b = ir.b;
  Type* st = ir.storage(type);
  const bool complex = is_complex(type);
  const uint64_t parts = complex ? 2 : 1;
  if (where.uniform()) {
    Value* scalar_mask = mask && mask->getType()->isVectorTy() ? b.CreateOrReduce(mask) : mask;
    Value* index = times(ir, where.scalar, parts);
    Value* re = load_scalar(ir, base, st, index, scalar_mask);
    Val x;
    if (complex) {
      x = {re, load_scalar(ir, base, st, b.CreateAdd(index, b.getInt64(1)), scalar_mask)};
    } else {
      x = {ir.from_storage(re, type)};
    }
    if (mask && mask->getType()->isVectorTy()) {
      const int n = ir.lanes_of(mask);
      return ir.select(mask, ir.splat(x, n), ir.zero(type, n));
    }
    return x;
  }
  const int n = where.count;
  Type* vt = ir.wide(st, n);
  if (!where.vec && where.stride == 1 && mask && !mask->getType()->isVectorTy() && !complex && !ir.is_scalable() &&
      static_cast<uint64_t>(n) * st->getScalarSizeInBits() / 8 <= kZeros) {
    // The mask is the same for all lanes, so selecting the address of zeros is cheaper than a masked load.
    Value* p = b.CreateSelect(mask, address(ir, base, st, where.scalar), zeros(ir));
    return {ir.from_storage(load_run(ir, p, vt, nullptr), type)};
  }
  if (mask) mask = ir.splat(mask, n);
  if (!where.vec && where.stride == 1) {
    Value* p = address(ir, base, st, times(ir, where.scalar, parts));
    if (!complex) return {ir.from_storage(load_run(ir, p, vt, mask, where.aligned), type)};
    const auto [re, im] =
        ir.deinterleave(load_run(ir, p, ir.wide(st, 2 * n), mask ? ir.interleave(mask, mask) : nullptr));
    return {re, im};
  }
  if (!where.vec && where.stride == -1 && !mask && !complex) {
    Value* first = b.CreateSub(where.scalar, b.CreateSub(ir.count(n), b.getInt64(1)));
    Value* v = load_run(ir, address(ir, base, st, first), vt, nullptr);
    return {ir.from_storage(ir.reversed(v), type)};
  }
  const bool near =
      !where.vec && std::abs(where.stride) <= ir.target.tuning.near_stride && !complex && !ir.is_scalable();
  if (near && (!mask || st->getScalarSizeInBits() >= 32)) {
    return {ir.from_storage(load_near(ir, base, st, where, mask), type)};
  }
  if (!mask && !complex && !ir.is_scalable()) {
    const std::vector<int64_t> distances = constant_distances(where);
    Value* const p = address(ir, base, st, where.scalar);
    Value* const x = distances.empty() ? nullptr : load_pieces(ir, p, st, distances);
    if (x) return {ir.from_storage(x, type)};
  }
  if (!mask && !ir.is_scalable()) {
    const std::vector<Value*> places = places_of_lanes(ir, base, st, where, parts);
    Value* const re = load_each(ir, places, st, 0);
    if (complex) return {re, load_each(ir, places, st, 1)};
    return {ir.from_storage(re, type)};
  }
  Value* const all = mask ? mask : all_lanes(ir, n);
  Value* none = llvm::Constant::getNullValue(vt);
  if (!complex && in_steps(ir, where)) {
    Value* places = step_addresses(ir, base, st, where);
    return {ir.from_storage(b.CreateMaskedGather(vt, places, align_of(st), all, none), type)};
  }
  Value* index = times(ir, lane_indices(ir, where), parts);
  Value* re = b.CreateMaskedGather(vt, address(ir, base, st, index), align_of(st), all, none);
  if (!complex) return {ir.from_storage(re, type)};
  Value* next = b.CreateAdd(index, ir.constant_int(index->getType(), 1));
  return {re, b.CreateMaskedGather(vt, address(ir, base, st, next), align_of(st), all, none)};
}

Value* load_halves(Ir& ir, Value* base, const Lanes& where) {
  auto& b = ir.b;
  const int pairs = where.count / 2;
  Type* const words = ir.wide(b.getInt32Ty(), pairs);
  Type* const floats = ir.wide(b.getFloatTy(), pairs);
  Value* const word =
      b.CreateAlignedLoad(words, address(ir, base, b.getInt16Ty(), where.scalar), align_of(b.getInt16Ty()));
  Value* const low = b.CreateBitCast(b.CreateShl(word, uint64_t{16}), floats);
  Value* const high = b.CreateBitCast(b.CreateAnd(word, ir.constant_int(words, 0xffff0000)), floats);
  std::vector<int> order(static_cast<size_t>(where.count));
  std::iota(order.begin(), order.end(), 0);
  return b.CreateShuffleVector(low, high, order);
}

void store_lanes(Ir& ir, Value* base, uint32_t type, const Lanes& where, const Val& value, Value* mask) {
  auto& b = ir.b;
  Type* st = ir.storage(type);
  const bool complex = is_complex(type);
  const uint64_t parts = complex ? 2 : 1;
  const int n = where.count;
  if (n == 1) {
    Value* index = times(ir, lane_indices(ir, where), parts);
    b.CreateAlignedStore(complex ? value.v : ir.to_storage(value, type), address(ir, base, st, index), align_of(st));
    if (complex) {
      index = b.CreateAdd(index, b.getInt64(1));
      b.CreateAlignedStore(value.im, address(ir, base, st, index), align_of(st));
    }
    return;
  }
  Val x = ir.splat(value, n);
  if (mask) mask = ir.splat(mask, n);
  if (!where.vec && where.stride == 1) {
    Value* p = address(ir, base, st, times(ir, where.scalar, parts));
    Value* raw = complex ? ir.interleave(x.v, x.im) : ir.to_storage(x, type);
    if (mask && complex) mask = ir.interleave(mask, mask);
    if (const int lanes = first_lanes_of(ir, mask)) {
      std::vector<int> order(static_cast<size_t>(lanes));
      std::iota(order.begin(), order.end(), 0);
      Value* const part = lanes > 1 ? b.CreateShuffleVector(raw, order) : b.CreateExtractElement(raw, uint64_t{0});
      b.CreateAlignedStore(part, p, align_of(st));
    } else if (mask) {
      b.CreateMaskedStore(raw, p, align_of(st), mask);
    } else {
      llvm::StoreInst* const store =
          b.CreateAlignedStore(raw, p, llvm::Align(align_of(st).value() * static_cast<uint64_t>(where.aligned)));
      llvm::Metadata* const one = llvm::ConstantAsMetadata::get(b.getInt32(1));
      if (where.bypasses_caches)
        store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), one));
    }
    return;
  }
  if (!mask && !ir.is_scalable()) {
    const std::vector<Value*> places = places_of_lanes(ir, base, st, where, parts);
    store_each(ir, places, st, complex ? x.v : ir.to_storage(x, type), 0);
    if (complex) store_each(ir, places, st, x.im, 1);
    return;
  }
  Value* const all = mask ? mask : all_lanes(ir, n);
  if (!complex && in_steps(ir, where)) {
    b.CreateMaskedScatter(ir.to_storage(x, type), step_addresses(ir, base, st, where), align_of(st), all);
    return;
  }
  Value* index = times(ir, lane_indices(ir, where), parts);
  b.CreateMaskedScatter(complex ? x.v : ir.to_storage(x, type), address(ir, base, st, index), align_of(st), all);
  if (complex) {
    Value* next = b.CreateAdd(index, ir.constant_int(index->getType(), 1));
    b.CreateMaskedScatter(x.im, address(ir, base, st, next), align_of(st), all);
  }
}

}  // namespace collet::codegen
