// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {

Expected<Shape> infer_fft(const InferInput& in) {
  const auto& a = in.as<FftAttrs>();
  const Shape& operand = in.operand(0);
  const Dims& length = a.length;
  const bool to_complex = a.type == FftType::RFFT, to_real = a.type == FftType::IRFFT;
  if (static_cast<uint32_t>(a.type) > static_cast<uint32_t>(FftType::IRFFT))
    return broken(in.op, "", "no such fft_type: ", static_cast<int64_t>(a.type));
  if (length.empty() || length.size() > 3)
    return broken(in.op, "C3", "fft_length ", length, " must have 1 to 3 entries");
  if (length.size() > static_cast<size_t>(operand.rank()))
    return broken(in.op, "C1", "fft_length ", length, " has more entries than ", operand, " has dimensions");
  if (to_complex && operand.type() != Type::F32 && operand.type() != Type::F64)
    return broken(in.op, "C2", "RFFT takes f32 or f64, but the operand is ", operand);
  if (!to_complex && !is_complex(operand.type()))
    return broken(in.op, "C2", "FFT, IFFT and IRFFT take complex numbers, but the operand is ", operand);
  const int last = operand.rank() - 1, begin = operand.rank() - static_cast<int>(length.size());
  for (size_t i = 0; i < length.size(); ++i) {
    const int d = begin + static_cast<int>(i);
    int64_t want = length[i];
    if (want < 0) return broken(in.op, "C4", "fft_length ", length, " has a negative entry");
    if (to_real && d == last) want = want == 0 && operand.dim(d) == 0 ? 0 : want / 2 + 1;
    if (!sizes_agree(operand.dim(d), want))
      return broken(in.op, to_real && d == last ? "C5" : "C4", "dimension ", d, " of ", operand, " must be ", want,
                    " for fft_length ", length);
  }
  if (!to_complex && !to_real) return operand.without_layout();
  DimList dims = DimList::of(operand);
  const bool bounded = operand.is_dynamic(last) && operand.dim(last) != kUnbounded;
  const int64_t n = length.back();
  dims.set(static_cast<size_t>(last), to_real || n == 0 ? n : n / 2 + 1, bounded);
  const bool wide = operand.type() == Type::F64 || operand.type() == Type::C128;
  if (to_real) return dims.shape(wide ? Type::F64 : Type::F32);
  return dims.shape(wide ? Type::C128 : Type::C64);
}

Status verify_fft(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
