// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/literal.h"

/// \file
/// Calibration: the range of the real numbers that integers of 8 bits are to represent, found from values that a program
/// computed. Nothing here is safe to change from two threads at once.

namespace collet::hlo {

/// How the range of a value is found. docs/quantize.md has the formulas.
enum class CalibrationMethod : uint8_t {
  MinMax,      ///< from the smallest to the largest value that was seen
  Percentile,  ///< a given share of the magnitudes is inside
  Entropy,     ///< the least divergence (Kullback-Leibler) of the quantized distribution from the true one
  Mse          ///< the least mean square error
};
/// Returns the names that the command line has, in the order of the enumeration.
std::span<const std::string_view> calibration_methods();

/// The distribution of the magnitudes of a value: bin i has those of i * width < |x| <= (i + 1) * width. Zeros, which every
/// quantization represents exactly, are in no bin.
struct Histogram {
  double width = 0;
  uint64_t zeros = 0;
  std::vector<uint64_t> bins;

  /// Returns the number of all values, with zeros.
  uint64_t count() const;
  /// Returns the share of all values whose magnitude is above `threshold`, which is the upper end of a bin.
  double share_above(double threshold) const;
};

/// Each returns the magnitude at which values are to be clipped: the upper end of a bin; 0 if all values are zero.
/// `levels` is the number of steps between 0 and that magnitude: 127, or 255 for values of one sign.
double percentile_threshold(const Histogram& histogram, double percentile);
double entropy_threshold(const Histogram& histogram, int levels);
double mse_threshold(const Histogram& histogram, int levels);

/// What was seen of one value. All batches are shown to see_range first; the methods other than min-max need a second round,
/// of see_values.
class Observer {
 public:
  /// The number of bins of the histogram.
  static constexpr size_t kBins = 2048;

  /// Returns an error if an element is NaN or infinite: it says which.
  Status see_range(const Literal& value);
  void see_values(const Literal& value);

  /// The smallest and the largest value; 0 and 0 if there was none.
  double least() const { return least_; }
  double most() const { return most_; }
  const Histogram& histogram() const { return histogram_; }

 private:
  double least_ = 0, most_ = 0;
  bool any_ = false;
  Histogram histogram_;
};

/// A range of real numbers that has 0, and the share of the values seen that lies outside.
struct ClippedRange {
  double low = 0, high = 0;
  double clipped = 0;
};
/// Returns the range that a method chooses. `symmetric`: the range is to be used on both sides of 0. `percentile`, of
/// CalibrationMethod::Percentile, is above 0 and at most 100.
ClippedRange choose_range(const Observer& observer, CalibrationMethod method, double percentile, bool symmetric);

/// Integers that stand for real numbers: (stored - zero_point) * scale.
struct Uniform {
  double scale = 1;  ///< a number of f32
  int64_t zero_point = 0;
  int64_t low = -128, high = 127;  ///< of the stored integers

  /// Returns the nearest stored integer, of ties the even one, clamped.
  int64_t stored(double value) const;
};
/// Returns the quantization in 8 bits of a range that has 0. Symmetric: the zero point is 0, and the scale is the largest
/// magnitude / 127. Else: the scale is (high - low) / 255.
Uniform uniform_of_range(double low, double high, bool symmetric);
/// Returns the scale at which `magnitude` is the largest integer of `bits` bits, symmetric and without the least one: 127,
/// or 7. It is 1 if the magnitude is too small for a normal f32.
double symmetric_scale(double magnitude, int bits);

}  // namespace collet::hlo
