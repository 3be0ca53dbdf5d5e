// SPDX-License-Identifier: Apache-2.0
#include "hlo/quantize/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>

namespace collet::hlo {
namespace {

constexpr double kLeastScale = 0x1p-100;  // so that products of two scales are normal numbers of f32

double as_f32(double x) {
  return static_cast<double>(static_cast<float>(x));
}

// Returns the upper end of bin `i`.
double end_of(const Histogram& histogram, size_t i) {
  return histogram.width * static_cast<double>(i + 1);
}

// Where few values are left inside, their distributions agree whatever is outside. Of equal divergences the one that clips
// least is taken.
constexpr double kMostClipped = 0.1, kSameDivergence = 1e-12;

double outside_of(const std::vector<uint64_t>& bins, size_t used) {
  return static_cast<double>(std::accumulate(bins.begin() + static_cast<int64_t>(used), bins.end(), uint64_t{0}));
}

/// The divergence of the first `used` bins, quantized to `levels` steps, from the distribution whose values above them
/// are clipped: sum of P log(P / Q). Infinite if Q is 0 where P is not.
double divergence(const std::vector<uint64_t>& bins, size_t used, size_t levels, double total) {
  const double outside = outside_of(bins, used);
  double out = 0;
  for (size_t level = 0; level < levels; ++level) {
    // The bins of one step share their values evenly, as far as they have any.
    const size_t from = level * used / levels, to = (level + 1) * used / levels;
    double sum = 0, filled = 0;
    for (size_t i = from; i < to; ++i) {
      sum += static_cast<double>(bins[i]);
      filled += bins[i] > 0 ? 1 : 0;
    }
    for (size_t i = from; i < to; ++i) {
      const double p = static_cast<double>(bins[i]) + (i + 1 == used ? outside : 0);
      if (p == 0) continue;
      if (bins[i] == 0) return std::numeric_limits<double>::infinity();
      // P has the sum `total`; Q, the sum of what is inside.
      const double q = sum / filled * total / (total - outside);
      out += p / total * std::log(p / q);
    }
  }
  return out;
}

}  // namespace

std::span<const std::string_view> calibration_methods() {
  static constexpr std::string_view kNames[] = {"min-max", "percentile", "entropy", "mse"};
  return kNames;
}

uint64_t Histogram::count() const {
  return std::accumulate(bins.begin(), bins.end(), zeros);
}

double Histogram::share_above(double threshold) const {
  const uint64_t all = count();
  if (all == 0 || width <= 0) return 0;
  uint64_t above = 0;
  for (size_t i = 0; i < bins.size(); ++i)
    if ((static_cast<double>(i) + 0.5) * width > threshold) above += bins[i];
  return static_cast<double>(above) / static_cast<double>(all);
}

double percentile_threshold(const Histogram& histogram, double percentile) {
  const double wanted = percentile / 100 * static_cast<double>(histogram.count());
  auto inside = static_cast<double>(histogram.zeros);
  double last = 0;
  for (size_t i = 0; i < histogram.bins.size(); ++i) {
    if (histogram.bins[i] == 0) continue;
    // At least one magnitude is inside, since a range of nothing represents nothing.
    if (last > 0 && inside >= wanted) break;
    inside += static_cast<double>(histogram.bins[i]);
    last = end_of(histogram, i);
  }
  return last;
}

double entropy_threshold(const Histogram& histogram, int levels) {
  const std::vector<uint64_t>& bins = histogram.bins;
  const auto total = static_cast<double>(std::accumulate(bins.begin(), bins.end(), uint64_t{0}));
  if (total == 0) return 0;
  const auto steps = static_cast<size_t>(levels);
  size_t best = bins.size();
  double least = std::numeric_limits<double>::infinity();
  for (size_t used = bins.size(); used >= std::min(steps, bins.size()); --used) {
    if (outside_of(bins, used) > kMostClipped * total) break;
    const double d = divergence(bins, used, std::min(steps, used), total);
    if (d < least - kSameDivergence) {
      least = d;
      best = used;
    }
  }
  return end_of(histogram, best - 1);
}

double mse_threshold(const Histogram& histogram, int levels) {
  const std::vector<uint64_t>& bins = histogram.bins;
  if (std::all_of(bins.begin(), bins.end(), [](uint64_t n) { return n == 0; })) return 0;
  size_t best = bins.size();
  double least = std::numeric_limits<double>::infinity();
  for (size_t used = 1; used <= bins.size(); ++used) {
    const double threshold = end_of(histogram, used - 1), step = threshold / levels;
    double error = 0;
    for (size_t i = 0; i < bins.size(); ++i) {
      // Rounding to steps leaves errors that are spread evenly: their mean square is step^2 / 12.
      const double beyond = (static_cast<double>(i) + 0.5) * histogram.width - threshold;
      error += static_cast<double>(bins[i]) * (i < used ? step * step / 12 : beyond * beyond);
    }
    if (error < least) {
      least = error;
      best = used;
    }
  }
  return end_of(histogram, best - 1);
}

Status Observer::see_range(const Literal& value) {
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double x = value.as_double(i);
    if (!std::isfinite(x))
      return invalid_argument("element " + std::to_string(i) + " of " + value.shape().to_string() + " is " +
                              (std::isnan(x) ? "NaN" : "infinite"));
    least_ = any_ ? std::min(least_, x) : x;
    most_ = any_ ? std::max(most_, x) : x;
    any_ = true;
  }
  return {};
}

void Observer::see_values(const Literal& value) {
  if (histogram_.bins.empty()) {
    histogram_.bins.resize(kBins);
    histogram_.width = std::max(std::abs(least_), std::abs(most_)) / static_cast<double>(kBins);
  }
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double x = std::abs(value.as_double(i));
    if (x == 0 || histogram_.width == 0) {
      ++histogram_.zeros;
      continue;
    }
    const double bin = std::ceil(x / histogram_.width) - 1;
    ++histogram_.bins[static_cast<size_t>(std::clamp(bin, 0.0, static_cast<double>(kBins - 1)))];
  }
}

ClippedRange choose_range(const Observer& observer, CalibrationMethod method, double percentile, bool symmetric) {
  ClippedRange out{std::min(observer.least(), 0.0), std::max(observer.most(), 0.0), 0};
  if (method == CalibrationMethod::MinMax) return out;
  const Histogram& histogram = observer.histogram();
  const int levels = !symmetric && (out.low == 0 || out.high == 0) ? 255 : 127;
  const double threshold = method == CalibrationMethod::Percentile ? percentile_threshold(histogram, percentile)
                           : method == CalibrationMethod::Entropy  ? entropy_threshold(histogram, levels)
                                                                   : mse_threshold(histogram, levels);
  out.low = std::max(out.low, -threshold);
  out.high = std::min(out.high, threshold);
  out.clipped = histogram.share_above(threshold);
  return out;
}

int64_t Uniform::stored(double value) const {
  const double scaled = std::nearbyint(value / scale + static_cast<double>(zero_point));
  return static_cast<int64_t>(std::clamp(scaled, static_cast<double>(low), static_cast<double>(high)));
}

double symmetric_scale(double magnitude, int bits) {
  const double most = std::ldexp(1.0, bits - 1) - 1;
  return magnitude / most < kLeastScale ? 1 : as_f32(magnitude / most);
}

Uniform uniform_of_range(double low, double high, bool symmetric) {
  Uniform out;
  if (symmetric) {
    out.scale = symmetric_scale(std::max(std::abs(low), std::abs(high)), 8);
    return out;
  }
  const double step = (high - low) / 255;
  if (step < kLeastScale) return out;
  out.scale = as_f32(step);
  out.zero_point = std::clamp<int64_t>(std::llrint(-128 - low / out.scale), -128, 127);
  return out;
}

}  // namespace collet::hlo
