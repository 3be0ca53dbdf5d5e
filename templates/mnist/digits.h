// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mnist {

// Images of 28 x 28 pixels, one byte each, and the digit that each shows.
struct Digits {
  static constexpr int kSide = 28;
  static constexpr int kPixels = kSide * kSide;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
  size_t size() const { return labels.size(); }
};

// Draws varied digits: strokes that are shifted, scaled, rotated and slanted, with a pen of changing width and some
// noise. The same seed gives the same digits.
Digits draw_digits(size_t count, uint64_t seed);

// Reads a pair of IDX files, such as train-images-idx3-ubyte and train-labels-idx1-ubyte. Throws std::runtime_error.
Digits read_idx(const std::string& images, const std::string& labels);

// Writes a pair of IDX files. Throws std::runtime_error.
void write_idx(const Digits& digits, const std::string& images, const std::string& labels);

}  // namespace mnist
