// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <cstdint>
#include <optional>
#include <span>

namespace collet::mutants {

/// A result of a program that is a * b + c of the program's arguments, elementwise in f32.
struct Contraction {
  uint32_t result = 0, a = 0, b = 0, c = 0;  ///< numbers of the entry's results and arguments
  uint64_t elements = 0;
};

/// Returns the first such result: add(multiply(a, b), c) or add(c, multiply(a, b)), in the entry or in a fusion.
std::optional<Contraction> find_contraction(const collet_program* program);
/// Computes out = a * b + c with one rounding, as a fused multiply-add does.
void contract(std::span<const float> a, std::span<const float> b, std::span<const float> c, std::span<float> out);

}  // namespace collet::mutants
