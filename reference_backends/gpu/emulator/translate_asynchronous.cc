// SPDX-License-Identifier: Apache-2.0
// Translates barriers that count bytes, copies of boxes, and products by warpgroups.
#include "reference_backends/gpu/emulator/function_translator.h"

namespace collet::gpu::emulator {

FunctionTranslator::V FunctionTranslator::shared_offset(const Instruction& in, const Operand& o) {
  note_space(Space::kShared);
  return b_.CreateTrunc(address(in, o), b_.getInt32Ty());
}

void FunctionTranslator::op_mbarrier(const Instruction& in, Modifiers& m) {
  facts_.meets = true;  // threads wait for each other
  const int what = m.take_any({"init", "inval", "arrive", "expect_tx", "try_wait", "test_wait"});
  if (what < 0) fail(in, "not a known form");
  const bool announces = what == 3 || m.take("expect_tx");
  const bool has_parity = m.take("parity");
  m.ignore({"release", "acquire", "relaxed", "cta", "cluster"});
  if (m.take_space() != Space::kShared) fail(in, "a barrier lies in shared memory of the block");
  m.take("b64");
  switch (what) {
    case 0:
      want_operands(in, 2, 2);
      call(b_.getVoidTy(), &collet_emu_mbarrier_init,
           {thread_, shared_offset(in, operand(in, 0)), read_i32(in, 1), line_of(in)});
      return;
    case 1:
      want_operands(in, 1, 1);
      call(b_.getVoidTy(), &collet_emu_mbarrier_inval, {thread_, shared_offset(in, operand(in, 0)), line_of(in)});
      return;
    case 2: {
      want_operands(in, 2, 3);
      if (operand(in, 0).kind != Operand::Kind::kSink) fail(in, "the state of a barrier is not supported: use _");
      const bool has_number = in.operands.size() == 3;
      if (announces && !has_number) fail(in, "the number of bytes is missing");
      V number = has_number ? read_i32(in, 2) : i32(1);
      call(b_.getVoidTy(), &collet_emu_mbarrier_arrive,
           {thread_, shared_offset(in, operand(in, 1)), announces ? i32(1) : number, announces ? number : i32(0),
            line_of(in)});
      return;
    }
    case 3:
      want_operands(in, 2, 2);
      call(b_.getVoidTy(), &collet_emu_mbarrier_arrive,
           {thread_, shared_offset(in, operand(in, 0)), i32(0), read_i32(in, 1), line_of(in)});
      return;
    default: {
      want_operands(in, 3, 4);
      if (!has_parity) fail(in, "the state of a barrier is not supported: use .parity");
      V ended = call(b_.getInt32Ty(), &collet_emu_mbarrier_wait,
                     {thread_, shared_offset(in, operand(in, 1)), read_i32(in, 2), i32(what == 4), line_of(in)});
      write(in, b_.CreateICmpNE(ended, i32(0)));
    }
  }
}

// cp.async.bulk.tensor from global to shared memory.
void FunctionTranslator::copy_box(const Instruction& in, Modifiers& m) {
  facts_.meets = true;
  if (!m.take("tensor")) fail(in, "only copies of boxes are known");
  const int rank = m.take_any({"1d", "2d", "3d", "4d", "5d"}) + 1;
  const bool to_shared = m.take("shared::cluster") || m.take("shared::cta");
  if (rank == 0 || !to_shared || !m.take("global") || !m.take("mbarrier::complete_tx::bytes"))
    fail(in, "not a known form");
  m.take("tile");
  want_operands(in, 3, 3);
  const Operand& map = operand(in, 1);
  if (map.kind != Operand::Kind::kAddress || map.elements.size() != static_cast<size_t>(rank))
    fail(in, "the box begins at as many coordinates as the array has dimensions");
  V at = scratch(8);
  for (int d = 0; d < rank; ++d) {
    b_.CreateAlignedStore(read_bits(in, map.elements[static_cast<size_t>(d)], 32),
                          b_.CreateConstGEP1_64(b_.getInt32Ty(), at, static_cast<uint64_t>(d)), llvm::Align(4));
  }
  call(b_.getVoidTy(), &collet_emu_box_copy,
       {thread_, shared_offset(in, operand(in, 0)), address(in, map), i32(static_cast<uint32_t>(rank)), at,
        shared_offset(in, operand(in, 2)), line_of(in)});
}

// The emulator gives a thread as many registers as it wants.
void FunctionTranslator::op_setmaxnreg(const Instruction& in, Modifiers& m) {
  if (m.take_any({"inc", "dec"}) < 0) fail(in, "not a known form");
  m.ignore({"sync", "aligned", "u32"});
  want_operands(in, 1, 1);
}

void FunctionTranslator::op_wgmma(const Instruction& in, Modifiers& m) {
  facts_.meets = true;
  note_space(Space::kShared);
  const int what = m.take_any({"fence", "commit_group", "wait_group", "mma_async"});
  if (!m.take("sync") || !m.take("aligned")) fail(in, ".sync.aligned is missing");
  switch (what) {
    case 0:
      want_operands(in, 0, 0);
      call(b_.getVoidTy(), &collet_emu_wgmma_fence, {thread_, line_of(in)});
      return;
    case 1:
      want_operands(in, 0, 0);
      call(b_.getVoidTy(), &collet_emu_wgmma_commit, {thread_, line_of(in)});
      return;
    case 2: {
      want_operands(in, 1, 1);
      const Operand& n = operand(in, 0);
      if (n.kind != Operand::Kind::kInteger || n.integer > 7) fail(in, "the number of groups is a constant up to 7");
      call(b_.getVoidTy(), &collet_emu_wgmma_wait, {thread_, i32(static_cast<uint32_t>(n.integer)), line_of(in)});
      return;
    }
    case 3:
      break;
    default:
      fail(in, "not a known form");
  }
  WgmmaShape shape;
  unsigned depth = 0;
  for (shape.n = 8; shape.n <= 256 && depth == 0; shape.n += 8) {
    for (const unsigned k : {8u, 16u, 32u}) {
      if (!m.take("m64n" + std::to_string(shape.n) + "k" + std::to_string(k))) continue;
      depth = k;
      break;
    }
    if (depth != 0) break;
  }
  const Type sum = m.need_type();
  shape.type = m.need_type();
  if (m.need_type() != shape.type) fail(in, "factors of two types are not known");
  const bool is_integer = shape.type == Type::kS8 || shape.type == Type::kU8;
  const bool is_half = shape.type == Type::kF16 || shape.type == Type::kBf16;
  const bool is_known =
      is_integer || is_half || shape.type == Type::kTf32 || shape.type == Type::kE4m3 || shape.type == Type::kE5m2;
  if (!is_known || sum != (is_integer ? Type::kS32 : Type::kF32)) fail(in, "these types are not known");
  if (depth != 256 / bits_of(shape.type)) fail(in, "this shape is not known for these types");
  shape.a_in_registers = operand(in, 1).kind == Operand::Kind::kVector;
  if (shape.a_in_registers && (!is_half || operand(in, 1).elements.size() != 4))
    fail(in, "of first factors in registers, those of four registers with 16-bit numbers are known");
  const size_t flags = is_integer ? 0 : !is_half ? 2 : shape.a_in_registers ? 3 : 4;
  want_operands(in, 4 + flags, 4 + flags);
  const auto flag = [&](size_t i) {
    const Operand& o = operand(in, i);
    if (o.kind != Operand::Kind::kInteger) fail(in, "a constant is expected");
    return static_cast<int64_t>(o.integer);
  };
  if (flags != 0 && (flag(4) != 1 || flag(5) != 1)) fail(in, "factors with the other sign are not known");
  if (is_half) {
    shape.a_by_rows = !shape.a_in_registers && flag(6) != 0;
    shape.b_by_rows = flag(3 + flags) != 0;
  }
  const Operand& d = operand(in, 0);
  if (d.kind != Operand::Kind::kVector || d.elements.size() != shape.n / 2)
    fail(in, "the sums are " + std::to_string(shape.n / 2) + " registers");
  V memory = scratch(264);
  V out = b_.CreateConstGEP1_64(b_.getInt32Ty(), memory, 136);
  for (size_t i = 0; i < d.elements.size(); ++i) {
    b_.CreateAlignedStore(read_bits(in, d.elements[i], 32), b_.CreateConstGEP1_64(b_.getInt32Ty(), memory, i),
                          llvm::Align(4));
  }
  if (shape.a_in_registers) {
    for (size_t i = 0; i < 4; ++i) {
      b_.CreateAlignedStore(read_bits(in, operand(in, 1).elements[i], 32),
                            b_.CreateConstGEP1_64(b_.getInt32Ty(), memory, d.elements.size() + i), llvm::Align(4));
    }
  }
  V a = shape.a_in_registers ? i64(0) : read_bits(in, operand(in, 1), 64);
  V adds = read_predicate(in, operand(in, 3));
  WgmmaShape fresh = shape;
  fresh.adds = false;
  V code = b_.CreateSelect(adds, i32(shape.code()), i32(fresh.code()));
  call(b_.getVoidTy(), &collet_emu_wgmma,
       {thread_, code, a, read_bits(in, operand(in, 2), 64), memory, out, line_of(in)});
  for (size_t i = 0; i < d.elements.size(); ++i) {
    write(in, d.elements[i],
          b_.CreateAlignedLoad(b_.getInt32Ty(), b_.CreateConstGEP1_64(b_.getInt32Ty(), out, i), llvm::Align(4)));
  }
}

}  // namespace collet::gpu::emulator
