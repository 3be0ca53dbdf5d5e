// SPDX-License-Identifier: Apache-2.0
// Translates loads, stores, atomic operations, asynchronous copies, and matrix products.
#include <llvm/IR/Intrinsics.h>

#include <cstddef>

#include "reference_backends/gpu/emulator/function_translator.h"

namespace collet::gpu::emulator {

/// Returns an address as a 64-bit integer.
FunctionTranslator::V FunctionTranslator::address(const Instruction& in, const Operand& o) {
  if (o.kind != Operand::Kind::kAddress) fail(in, "an address in [] is expected");
  if (o.variable) return address_of(in, *o.variable, o.offset);
  if (o.reg < 0) return i64(static_cast<uint64_t>(o.offset));
  const unsigned n = bits_of(register_type(o.reg));
  if (n != 32 && n != 64) fail(in, "an address has 32 or 64 bits");
  V base = b_.CreateZExt(b_.CreateLoad(bits(n), register_at(o.reg)), b_.getInt64Ty());
  return o.offset ? b_.CreateAdd(base, i64(static_cast<uint64_t>(o.offset))) : base;
}

/// Returns the host's address of an operand's memory. The emitted code checks the access.
FunctionTranslator::V FunctionTranslator::pointer(const Instruction& in, const Operand& o, Space space, AccessKind kind,
                                                  unsigned bytes) {
  if (bytes > 16) fail(in, "an access has at most 16 bytes");
  note_space(space);
  V at = address(in, o);
  if (space == Space::kGeneric && o.variable) {
    // The address of a variable in another state space is converted to a generic address.
    if (o.variable->space == Space::kShared) at = b_.CreateAdd(at, i64(kSharedWindow));
    if (o.variable->space == Space::kLocal) at = b_.CreateAdd(at, i64(kLocalWindow));
  }
  if (space == Space::kGeneric) facts_.uses_shared = true;
  const AccessFunction function = access_function(space, kind, bytes);
  return call(b_.getPtrTy(), reinterpret_cast<const void*>(function), {thread_, at, line_of(in)});
}

/// Returns the address of a parameter that is accessed by name, which needs no check at run time.
FunctionTranslator::V FunctionTranslator::parameter_pointer(const Instruction& in, const Operand& o, unsigned bytes,
                                                            bool is_write) {
  if (o.kind != Operand::Kind::kAddress) fail(in, "an address in [] is expected");
  if (!o.variable) {
    if (is_write) fail(in, "no parameter to write to");
    return pointer(in, o, Space::kParam, AccessKind::kRead, bytes);
  }
  const Variable& v = *o.variable;
  if (v.space != Space::kParam) fail(in, v.name + " is no parameter");
  const auto offset = static_cast<uint64_t>(o.offset);
  if (offset > v.bytes || bytes > v.bytes - offset) fail(in, "an access past the end of the parameter " + v.name);
  if (offset % bytes) fail(in, "a misaligned access to the parameter " + v.name);
  const auto found = parameter_memory_.find(&v);
  if (found != parameter_memory_.end()) return b_.CreateConstGEP1_64(b_.getInt8Ty(), found->second, offset);
  if (is_write) fail(in, "the parameters of a kernel are read-only");
  uint32_t total = 0;
  const auto places = parameters_of(f_, total);
  V base = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getInt8Ty(), thread_, offsetof(Thread, parameters)));
  return b_.CreateConstGEP1_64(b_.getInt8Ty(), base, places[static_cast<size_t>(v.index)].offset + offset);
}

void FunctionTranslator::op_ld(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 3);
  const bool strong = m.take_any({"volatile", "relaxed", "acquire"}) >= 0;
  m.ignore({"weak", "cta", "cluster", "gpu", "sys", "nc", "ca", "cg", "cs", "lu", "cv", "L1::evict_normal",
            "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B",
            "L2::256B"});
  const Space space = m.take_space();
  const int vector = m.take_any({"v2", "v4"});
  const Type t = m.need_type();
  const unsigned count = vector < 0 ? 1 : vector == 0 ? 2 : 4, bytes = bytes_of(t);
  if (t == Type::kPred) fail(in, "a predicate has no address");
  const AccessKind kind = strong ? AccessKind::kStrongRead : AccessKind::kRead;
  V p = space == Space::kParam ? parameter_pointer(in, operand(in, 1), bytes * count, false)
                               : pointer(in, operand(in, 1), space, kind, bytes * count);
  const Operand& to = operand(in, 0);
  if ((count > 1) != (to.kind == Operand::Kind::kVector) || (count > 1 && to.elements.size() != count)) {
    fail(in, "as many registers in {} as the vector has elements");
  }
  for (unsigned i = 0; i < count; ++i) {
    const Operand& one = count == 1 ? to : to.elements[i];
    if (one.kind == Operand::Kind::kSink) continue;
    auto* const load =
        b_.CreateAlignedLoad(bits(8 * bytes), b_.CreateConstGEP1_64(b_.getInt8Ty(), p, uint64_t{i} * bytes),
                             llvm::Align(space == Space::kParam ? 1 : bytes));
    if (strong && bytes <= 8) load->setAtomic(llvm::AtomicOrdering::Acquire);
    write(in, one, load, is_signed(t) && !is_float(t));
  }
}

void FunctionTranslator::op_ldu(const Instruction& in, Modifiers& m) {
  op_ld(in, m);
}

void FunctionTranslator::op_st(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 3);
  const bool strong = m.take_any({"volatile", "relaxed", "release"}) >= 0;
  m.ignore({"weak", "cta", "cluster", "gpu", "sys", "wb", "cg", "cs", "wt", "L1::evict_normal", "L1::evict_unchanged",
            "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  const Space space = m.take_space();
  const int vector = m.take_any({"v2", "v4"});
  const Type t = m.need_type();
  const unsigned count = vector < 0 ? 1 : vector == 0 ? 2 : 4, bytes = bytes_of(t);
  if (t == Type::kPred) fail(in, "a predicate has no address");
  if (space == Space::kConst) fail(in, "constant memory is read-only");
  const Operand& from = operand(in, 1);
  if ((count > 1) != (from.kind == Operand::Kind::kVector) || (count > 1 && from.elements.size() != count)) {
    fail(in, "as many registers in {} as the vector has elements");
  }
  const AccessKind kind = strong ? AccessKind::kStrongWrite : AccessKind::kWrite;
  V p = space == Space::kParam ? parameter_pointer(in, operand(in, 0), bytes * count, true)
                               : pointer(in, operand(in, 0), space, kind, bytes * count);
  for (unsigned i = 0; i < count; ++i) {
    V value = read_bits(in, count == 1 ? from : from.elements[i], 8 * bytes, true);
    auto* const store = b_.CreateAlignedStore(value, b_.CreateConstGEP1_64(b_.getInt8Ty(), p, uint64_t{i} * bytes),
                                              llvm::Align(space == Space::kParam ? 1 : bytes));
    if (strong && bytes <= 8) store->setAtomic(llvm::AtomicOrdering::Release);
  }
}

FunctionTranslator::V FunctionTranslator::atomic_value(const Instruction& in, const std::string& op, Type t, V p,
                                                       V value, V other) {
  using O = llvm::AtomicRMWInst;
  const auto order = llvm::AtomicOrdering::SequentiallyConsistent;
  const llvm::MaybeAlign align(bytes_of(t));
  if (op == "cas") {
    V pair = b_.CreateAtomicCmpXchg(p, value, other, align, order, order);
    return b_.CreateExtractValue(pair, 0);
  }
  if (op == "exch") return b_.CreateAtomicRMW(O::Xchg, p, value, align, order);
  if (is_float(t)) {
    if (op == "add" && (t == Type::kF32 || t == Type::kF64)) return b_.CreateAtomicRMW(O::FAdd, p, value, align, order);
    if (t == Type::kF32 || t == Type::kF64) fail(in, "no such operation of this type");
    const HalfOp half = op == "add"   ? HalfOp::kAdd
                        : op == "min" ? HalfOp::kMin
                        : op == "max" ? HalfOp::kMax
                                      : HalfOp::kEx2;
    if (half == HalfOp::kEx2) fail(in, "no such operation of this type");
    uint32_t code = static_cast<uint32_t>(half);
    if (bits_of(t) == 32) code |= kHalfPair;
    if (t == Type::kBf16 || t == Type::kBf16x2) code |= kHalfBf16;
    V r = call(b_.getInt32Ty(), &collet_emu_atomic_half, {p, i32(code), b_.CreateZExt(value, b_.getInt32Ty())});
    return b_.CreateTrunc(r, bits(bits_of(t)));
  }
  static const std::map<std::string_view, O::BinOp> kOps = {
      {"add", O::Add}, {"and", O::And}, {"or", O::Or}, {"xor", O::Xor}, {"inc", O::UIncWrap}, {"dec", O::UDecWrap}};
  if (op == "min" || op == "max") {
    const bool is_max = op == "max";
    const O::BinOp which = is_signed(t) ? (is_max ? O::Max : O::Min) : (is_max ? O::UMax : O::UMin);
    return b_.CreateAtomicRMW(which, p, value, align, order);
  }
  return b_.CreateAtomicRMW(kOps.at(op), p, value, align, order);
}

void FunctionTranslator::atomic(const Instruction& in, Modifiers& m, bool returns) {
  // Acquire and release also order other accesses, so a fence is emitted.
  if (m.take_any({"acquire", "release", "acq_rel"}) >= 0) call(b_.getVoidTy(), &collet_emu_fence, {thread_});
  m.ignore({"relaxed", "cta", "cluster", "gpu", "sys", "noftz", "L2::cache_hint"});
  const Space space = m.take_space();
  static constexpr const char* kOps[] = {"and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"};
  std::string op;
  for (const char* name : kOps) {
    if (op.empty() && m.take(name)) op = name;
  }
  if (op.empty()) fail(in, "not a known operation");
  const Type t = m.need_type();
  const size_t first = returns ? 1 : 0, values = op == "cas" ? 2 : 1;
  want_operands(in, first + 1 + values, first + 1 + values);
  if (bytes_of(t) > 8 || bytes_of(t) < 2) fail(in, "no such type");
  const bool plain = op == "exch" || op == "cas";
  const auto get = [&](size_t i) { return plain ? read_bits(in, operand(in, i), bits_of(t)) : read(in, i, t); };
  V value = get(first + 1), other = op == "cas" ? get(first + 2) : nullptr;
  V p = pointer(in, operand(in, first), space, AccessKind::kAtomic, bytes_of(t));
  V old = atomic_value(in, op, t, p, value, other);
  if (returns) write(in, old);
}

void FunctionTranslator::op_atom(const Instruction& in, Modifiers& m) {
  atomic(in, m, true);
}

void FunctionTranslator::op_red(const Instruction& in, Modifiers& m) {
  if (m.take("async")) fail(in, "red.async is not supported");
  atomic(in, m, false);
}

void FunctionTranslator::op_cvta(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const bool to = m.take("to");
  const Space space = m.take_space();
  const unsigned n = bits_of(m.need_type());
  if (n != 64) fail(in, "only addresses of 64 bits are known");
  const Operand& from = operand(in, 1);
  V a = read_bits(in, from, n);
  uint64_t window = 0;
  if (space == Space::kShared) window = kSharedWindow;
  if (space == Space::kLocal) window = kLocalWindow;
  // The name of a parameter is a generic address already.
  if (space == Space::kParam && !to) return write(in, b_.CreateOr(a, i64(kParamWindow)));
  if (space == Space::kParam) window = kParamWindow;
  if (space == Space::kGeneric) fail(in, "the space is missing");
  note_space(space);
  write(in, window ? (to ? b_.CreateSub(a, i64(window)) : b_.CreateAdd(a, i64(window))) : a);
}

void FunctionTranslator::op_isspacep(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  const Space space = m.take_space();
  V top = b_.CreateLShr(read_bits(in, operand(in, 1), 64), 56);
  switch (space) {
    case Space::kShared:
      return write(in, b_.CreateICmpEQ(top, i64(kSharedWindow >> 56)));
    case Space::kLocal:
      return write(in, b_.CreateICmpEQ(top, i64(kLocalWindow >> 56)));
    case Space::kGlobal:
      return write(in, b_.CreateICmpEQ(top, i64(0)));
    case Space::kParam:
      return write(in, b_.CreateICmpEQ(top, i64(kParamWindow >> 56)));
    default:
      fail(in, "no such space");
  }
}

void FunctionTranslator::op_prefetch(const Instruction& in, Modifiers& m) {
  m.ignore({"global", "local", "L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap"});
  want_operands(in, 1, 1);
}

void FunctionTranslator::op_membar(const Instruction& in, Modifiers& m) {
  want_operands(in, 0, 0);
  if (m.take_any({"cta", "gl", "sys"}) < 0) fail(in, "the level is missing");
  call(b_.getVoidTy(), &collet_emu_fence, {thread_});
}

void FunctionTranslator::op_fence(const Instruction& in, Modifiers& m) {
  want_operands(in, 0, 0);
  if (m.take("proxy")) {
    if (!m.take("async") && !m.take("async.shared::cta")) fail(in, "only the asynchronous proxy is known");
    m.ignore({"shared::cta"});
    call(b_.getVoidTy(), &collet_emu_proxy_fence, {thread_});
    return;
  }
  m.ignore({"mbarrier_init", "release", "sc", "acq_rel", "cta", "cluster", "gpu", "sys"});
  call(b_.getVoidTy(), &collet_emu_fence, {thread_});
}

// Supports the forms of cp.async, and of bulk copies those of boxes.
void FunctionTranslator::op_cp(const Instruction& in, Modifiers& m) {
  if (!m.take("async")) fail(in, "unknown instruction");
  if (m.take("bulk")) return copy_box(in, m);
  if (m.take("commit_group")) {
    want_operands(in, 0, 0);
    call(b_.getVoidTy(), &collet_emu_copy_commit, {thread_});
    return;
  }
  if (m.take("wait_all")) {
    want_operands(in, 0, 0);
    call(b_.getVoidTy(), &collet_emu_copy_wait, {thread_, i32(UINT32_MAX)});
    return;
  }
  if (m.take("wait_group")) {
    want_operands(in, 1, 1);
    const Operand& n = operand(in, 0);
    if (n.kind != Operand::Kind::kInteger || n.integer > 1024) fail(in, "the number of groups is a constant");
    call(b_.getVoidTy(), &collet_emu_copy_wait, {thread_, i32(static_cast<uint32_t>(n.integer))});
    return;
  }
  const int cache = m.take_any({"ca", "cg"});
  if (cache < 0 || !m.take("shared") + !m.take("shared::cta") == 2 || !m.take("global")) fail(in, "not a known form");
  m.ignore({"L2::64B", "L2::128B", "L2::256B"});
  want_operands(in, 3, 4);
  note_space(Space::kShared);
  const Operand& size = operand(in, 2);
  if (size.kind != Operand::Kind::kInteger ||
      (size.integer != 16 && (cache == 1 || (size.integer != 4 && size.integer != 8)))) {
    fail(in, "the size is 16, and with .ca 4 or 8 too");
  }
  const auto bytes = static_cast<uint32_t>(size.integer);
  V from_bytes = i32(bytes);
  if (in.operands.size() == 4) {
    const Operand& o = operand(in, 3);
    if (o.kind == Operand::Kind::kRegister && register_type(o.reg) == Type::kPred) {
      from_bytes = b_.CreateSelect(read_predicate(in, o), i32(0), from_bytes);
    } else {
      from_bytes = read_bits(in, o, 32);
    }
  }
  V to = b_.CreateTrunc(address(in, operand(in, 0)), b_.getInt32Ty());
  call(b_.getVoidTy(), &collet_emu_copy_async,
       {thread_, to, address(in, operand(in, 1)), i32(bytes), from_bytes, line_of(in)});
}

void FunctionTranslator::op_ldmatrix(const Instruction& in, Modifiers& m) {
  want_operands(in, 2, 2);
  m.ignore({"sync", "aligned"});
  const int count = m.take_any({"x1", "x2", "x4"});
  const bool transposed = m.take("trans");
  if (count < 0 || !m.take("m8n8")) fail(in, "not a known form");
  const Space space = m.take_space();
  if (m.need_type() != Type::kB16) fail(in, "the type is .b16");
  if (space != Space::kShared) fail(in, "the matrices lie in shared memory");
  note_space(Space::kShared);
  facts_.meets = true;
  const Operand& to = operand(in, 0);
  const unsigned n = 1u << count;
  if (to.kind != Operand::Kind::kVector || to.elements.size() != n) fail(in, std::to_string(n) + " registers in {}");
  V out = scratch(4);
  call(b_.getVoidTy(), &collet_emu_ldmatrix,
       {thread_, i32(n | (transposed ? 8 : 0)), address(in, operand(in, 1)), out, line_of(in)});
  for (unsigned i = 0; i < n; ++i) {
    write(in, to.elements[i], b_.CreateLoad(b_.getInt32Ty(), b_.CreateConstGEP1_64(b_.getInt32Ty(), out, i)));
  }
}

void FunctionTranslator::op_mma(const Instruction& in, Modifiers& m) {
  want_operands(in, 4, 4);
  if (!m.take("sync")) fail(in, ".sync is missing");
  m.take("aligned");
  MmaShape shape;
  struct Size {
    const char* name;
    unsigned m, k;
  };
  constexpr Size kSizes[] = {{"m8n8k4", 8, 4},     {"m16n8k4", 16, 4},   {"m16n8k8", 16, 8},
                             {"m16n8k16", 16, 16}, {"m16n8k32", 16, 32}, {"m8n8k16", 8, 16}};
  bool found = false;
  for (const Size& s : kSizes) {
    if (!found && m.take(s.name)) {
      shape.m = s.m;
      shape.k = s.k;
      found = true;
    }
  }
  if (!found) fail(in, "this shape is not known");
  if (!m.take("row") || !m.take("col")) fail(in, "a is .row and b is .col");
  shape.saturate = m.take("satfinite");
  shape.result = m.need_type();
  shape.a = m.need_type();
  shape.b = m.need_type();
  shape.accumulator = m.need_type();
  if (!shape.registers('a') || !shape.registers('b') || !shape.registers('c') || !shape.registers('d')) {
    fail(in, "these types are not known for this shape");
  }
  facts_.meets = true;
  const auto element_bits = [](Type t) { return t == Type::kF64 ? 64u : 32u; };
  unsigned words = 0;
  const char kNames[] = {'d', 'a', 'b', 'c'};
  const Type kTypes[] = {shape.result, shape.a, shape.b, shape.accumulator};
  V in_memory = scratch(64);
  V out_memory = b_.CreateConstGEP1_64(b_.getInt32Ty(), in_memory, 48);
  for (unsigned i = 1; i < 4; ++i) {
    const Operand& o = operand(in, i);
    const unsigned each = element_bits(kTypes[i]) / 32, count = shape.registers(kNames[i]) / each;
    if (o.kind != Operand::Kind::kVector || o.elements.size() != count) {
      fail(in, std::string("matrix ") + kNames[i] + " has " + std::to_string(count) + " registers");
    }
    for (const Operand& e : o.elements) {
      b_.CreateAlignedStore(read_bits(in, e, 32 * each), b_.CreateConstGEP1_64(b_.getInt32Ty(), in_memory, words),
                            llvm::Align(4));
      words += each;
    }
  }
  call(b_.getVoidTy(), &collet_emu_mma, {thread_, i32(shape.code()), in_memory, out_memory, line_of(in)});
  const Operand& d = operand(in, 0);
  const unsigned each = element_bits(shape.result) / 32, count = shape.registers('d') / each;
  if (d.kind != Operand::Kind::kVector || d.elements.size() != count)
    fail(in, "matrix d has " + std::to_string(count) + " registers");
  for (unsigned i = 0; i < count; ++i) {
    write(in, d.elements[i],
          b_.CreateAlignedLoad(bits(32 * each), b_.CreateConstGEP1_64(b_.getInt32Ty(), out_memory, uint64_t{i} * each),
                               llvm::Align(4)));
  }
}

}  // namespace collet::gpu::emulator
