// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "conformance/cases/indices.h"
#include "conformance/cases/plain_answer.h"
#include "conformance/oracle/counters.h"

/// \file
/// Computes rng-bit-generator. The words of the state are the key, then the counter, least significant word first.

namespace collet::conformance {
namespace {

uint32_t low_half(uint64_t word) {
  return static_cast<uint32_t>(word);
}
uint32_t high_half(uint64_t word) {
  return static_cast<uint32_t>(word >> 32);
}
uint64_t joined(uint32_t low, uint32_t high) {
  return low | uint64_t{high} << 32;
}

// The bits of all elements, and the number of counters used.
struct Drawn {
  std::vector<uint64_t> bits;
  uint64_t counters = 0;
};

// Each 64-bit element uses one counter. For narrower types two elements that are adjacent along one dimension share a
// counter: the first dimension of even size, else the first one of the largest size. Counters number the pairs in
// row-major order.
Drawn by_threefry(uint64_t key, uint64_t counter, const Shape& shape) {
  const Indices sizes = sizes_of(shape);
  const bool is_wide = hlo::type_info(shape.type()).bits == 64;
  const auto words = [&](uint64_t number) {
    const uint64_t at = counter + number;
    return threefry({low_half(at), high_half(at)}, {low_half(key), high_half(key)});
  };
  Drawn out;
  size_t paired = 0;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > sizes[paired]) paired = d;
  const auto even = std::find_if(sizes.begin(), sizes.end(), [](int64_t size) { return size % 2 == 0; });
  if (even != sizes.end()) paired = static_cast<size_t>(even - sizes.begin());
  Indices index(sizes.size());
  for (int64_t i = 0; i < shape.element_count(); ++i, advance(index, sizes)) {
    uint64_t number = 0;
    for (size_t d = 0; d < sizes.size() && !is_wide; ++d) {
      const int64_t pairs = (sizes[d] + 1) / 2;
      number = d == paired ? number * static_cast<uint64_t>(pairs) + static_cast<uint64_t>(index[d] / 2)
                           : number * static_cast<uint64_t>(sizes[d]) + static_cast<uint64_t>(index[d]);
    }
    if (is_wide) number = static_cast<uint64_t>(i);
    const auto [first, second] = words(number);
    const bool is_second = !sizes.empty() && index[paired] % 2 != 0;
    out.bits.push_back(is_wide ? joined(first, second) : is_second ? second : first);
    out.counters = std::max(out.counters, number + 1);
  }
  return out;
}

// Each block of four 32-bit words, or two 64-bit words, uses one counter.
Drawn by_philox(uint64_t key, uint64_t low, uint64_t high, const Shape& shape) {
  const bool is_wide = hlo::type_info(shape.type()).bits == 64;
  const uint64_t per_block = is_wide ? 2 : 4;
  Drawn out;
  for (uint64_t i = 0; i < static_cast<uint64_t>(shape.element_count()); ++i) {
    const uint64_t number = i / per_block, at = low + number, over = high + (at < low ? 1 : 0);
    const auto block =
        philox({low_half(at), high_half(at), low_half(over), high_half(over)}, {low_half(key), high_half(key)});
    const size_t place = i % per_block;
    out.bits.push_back(is_wide ? joined(block[2 * place], block[2 * place + 1]) : block[place]);
    out.counters = number + 1;
  }
  return out;
}

}  // namespace

std::optional<std::vector<Literal>> plain_random(const Instruction& instr, std::span<const Literal* const> operands) {
  const Literal& state = *operands[0];
  if (!instr.shape.is_tuple() || state.type() != hlo::Type::U64) return std::nullopt;
  const auto algorithm = instr.as<hlo::RngBitGeneratorAttrs>().algorithm;
  const Shape& shape = instr.shape.element(1);
  if (!hlo::is_integer(shape.type()) || hlo::type_info(shape.type()).bits < 8) return std::nullopt;
  std::vector<uint64_t> words;
  for (int64_t i = 0; i < state.element_count(); ++i) words.push_back(static_cast<uint64_t>(state.as_int(i)));
  Drawn drawn;
  if (algorithm == hlo::RngAlgorithm::THREE_FRY && words.size() == 2) {
    drawn = by_threefry(words[0], words[1], shape);
  } else if (algorithm == hlo::RngAlgorithm::PHILOX && words.size() == 3) {
    drawn = by_philox(words[0], words[1], words[2], shape);
  } else {
    return std::nullopt;
  }
  words[1] += drawn.counters;
  if (words.size() == 3 && words[1] < drawn.counters) ++words[2];
  Literal bits = Literal::zeros(shape);
  for (size_t i = 0; i < drawn.bits.size(); ++i)
    bits.set_int(static_cast<int64_t>(i), static_cast<int64_t>(drawn.bits[i]));
  std::vector<Literal> out;
  out.push_back(Literal::from_bytes(state.shape(), words.data()));
  out.push_back(std::move(bits));
  return out;
}

}  // namespace collet::conformance
