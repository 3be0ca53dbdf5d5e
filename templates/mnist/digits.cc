// SPDX-License-Identifier: Apache-2.0
#include "digits.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace mnist {

namespace {

struct Point {
  double x, y;
};

// Returns the strokes of a digit: each list of points is one stroke, with x to the right and y downwards, both from -1
// to 1.
const std::vector<std::vector<Point>>& strokes(int digit) {
  static const std::vector<std::vector<Point>> all[10] = {
      {{{0, -1}, {-0.5, -0.7}, {-0.65, 0}, {-0.5, 0.7}, {0, 1}, {0.5, 0.7}, {0.65, 0}, {0.5, -0.7}, {0, -1}}},
      {{{-0.35, -0.6}, {0.1, -1}, {0.1, 1}}},
      {{{-0.55, -0.6}, {-0.2, -1}, {0.3, -0.95}, {0.55, -0.55}, {0.4, -0.1}, {-0.55, 0.95}, {0.6, 0.95}}},
      {{{-0.5, -0.85},
        {0.1, -1},
        {0.5, -0.65},
        {0.35, -0.2},
        {-0.1, -0.05},
        {0.4, 0.1},
        {0.6, 0.5},
        {0.2, 0.95},
        {-0.5, 0.85}}},
      {{{0.1, -1}, {-0.6, 0.3}, {0.65, 0.3}}, {{0.3, -0.3}, {0.25, 1}}},
      {{{0.5, -0.95}, {-0.4, -0.95}, {-0.5, -0.1}, {0.2, -0.2}, {0.55, 0.25}, {0.3, 0.85}, {-0.5, 0.9}}},
      {{{0.35, -1}, {-0.3, -0.4}, {-0.55, 0.3}, {-0.2, 0.9}, {0.3, 0.9}, {0.5, 0.4}, {0.15, 0.05}, {-0.45, 0.3}}},
      {{{-0.6, -0.9}, {0.6, -0.9}, {0.1, 0}, {-0.15, 1}}},
      {{{0.05, -0.05},
        {-0.4, -0.5},
        {0, -1},
        {0.4, -0.55},
        {0.05, -0.05},
        {-0.5, 0.5},
        {0, 1},
        {0.5, 0.5},
        {0.05, -0.05}}},
      {{{0.45, -0.4}, {0.1, 0}, {-0.4, -0.2}, {-0.4, -0.7}, {0.1, -1}, {0.45, -0.6}, {0.4, 0.1}, {0.1, 1}}},
  };
  return all[digit];
}

// The generator splitmix64, which gives the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Returns a number that is uniformly distributed between -1 and 1.
  double even() { return static_cast<double>(next() >> 11) / 4503599627370496.0 - 1; }
  // Returns a number that is distributed around 0 and seldom beyond -1 or 1.
  double bell() { return (even() + even() + even()) / 2; }

 private:
  uint64_t state_;
};

double square(double x) {
  return x * x;
}

double squared_distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double t = std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / (square(dx) + square(dy) + 1e-9), 0.0, 1.0);
  return square(p.x - a.x - t * dx) + square(p.y - a.y - t * dy);
}

// The parameters of one drawn digit: position, size, slant.
struct Hand {
  explicit Hand(Random& random)
      : shift{random.bell() * 2.4, random.bell() * 2.4},
        width(7.0 * (1 + 0.22 * random.bell())),
        height(9.0 * (1 + 0.15 * random.bell())),
        slant(0.42 * random.bell()),
        turn(0.3 * random.bell()),
        pen(1.25 + 0.4 * random.bell()) {}

  Point place(Point p, Random& random) const {
    const double x = (p.x - slant * p.y + 0.16 * random.bell()) * width;
    const double y = (p.y + 0.15 * random.bell()) * height;
    return {13.5 + shift.x + x - turn * y, 13.5 + shift.y + y + turn * x};
  }

  Point shift;
  double width, height, slant, turn, pen;
};

void draw(int digit, Random& random, uint8_t* pixels) {
  const Hand hand(random);
  std::vector<std::pair<Point, Point>> lines;
  for (const std::vector<Point>& stroke : strokes(digit)) {
    Point last = hand.place(stroke[0], random);
    for (size_t i = 1; i < stroke.size(); ++i) {
      const Point next = hand.place(stroke[i], random);
      lines.emplace_back(last, next);
      last = next;
    }
  }
  const double inner = square(std::max(hand.pen - 0.6, 0.2)), outer = square(hand.pen + 0.6);
  for (int y = 0; y < Digits::kSide; ++y) {
    for (int x = 0; x < Digits::kSide; ++x) {
      double nearest = outer;
      for (const auto& line : lines) {
        const Point here{static_cast<double>(x), static_cast<double>(y)};
        nearest = std::min(nearest, squared_distance(here, line.first, line.second));
      }
      double ink = std::clamp((outer - nearest) / (outer - inner), 0.0, 1.0);
      if (ink > 0) ink *= 0.9 + 0.1 * random.bell();
      if (random.next() % 400 == 0) ink = 0.5 + 0.5 * random.even();
      pixels[y * Digits::kSide + x] = static_cast<uint8_t>(std::clamp(ink, 0.0, 1.0) * 255 + 0.5);
    }
  }
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

uint32_t big_endian(const std::vector<uint8_t>& bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) << 24 | static_cast<uint32_t>(bytes[at + 1]) << 16 |
         static_cast<uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
}

// Reads the data of an IDX file of bytes; `rest` are the expected dimensions after the first.
std::vector<uint8_t> read_idx_file(const std::string& path, const std::vector<uint32_t>& rest) {
  std::vector<uint8_t> bytes = read_file(path);
  const size_t head = 8 + 4 * rest.size();
  if (bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) throw std::runtime_error(path + ": unpack it first");
  if (bytes.size() < head || big_endian(bytes, 0) != 0x0801 + rest.size()) {
    throw std::runtime_error(path + " is not an IDX file of bytes with " + std::to_string(rest.size() + 1) +
                             " dimensions");
  }
  size_t each = 1;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (big_endian(bytes, 8 + 4 * i) != rest[i])
      throw std::runtime_error(path + ": images of another size than 28 x 28");
    each *= rest[i];
  }
  const size_t count = big_endian(bytes, 4);
  if ((bytes.size() - head) / each < count) throw std::runtime_error(path + " ends too early");
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(head));
  bytes.resize(count * each);
  return bytes;
}

void write_idx_file(const std::string& path, const std::vector<uint32_t>& dims, const std::vector<uint8_t>& data) {
  std::vector<uint8_t> head = {0, 0, 8, static_cast<uint8_t>(dims.size())};
  for (uint32_t dim : dims) {
    for (int shift : {24, 16, 8, 0}) head.push_back(static_cast<uint8_t>(dim >> shift));
  }
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(head.data()), static_cast<std::streamsize>(head.size()));
  file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace

Digits draw_digits(size_t count, uint64_t seed) {
  Random random(seed);
  Digits digits;
  digits.labels.resize(count);
  digits.pixels.resize(count * Digits::kPixels);
  for (size_t i = 0; i < count; ++i) {
    digits.labels[i] = static_cast<uint8_t>(random.next() % 10);
    draw(digits.labels[i], random, &digits.pixels[i * Digits::kPixels]);
  }
  return digits;
}

Digits read_idx(const std::string& images, const std::string& labels) {
  Digits digits;
  digits.pixels = read_idx_file(images, {Digits::kSide, Digits::kSide});
  digits.labels = read_idx_file(labels, {});
  if (digits.labels.size() * Digits::kPixels != digits.pixels.size()) {
    throw std::runtime_error(images + " and " + labels + " do not hold the same number");
  }
  for (uint8_t label : digits.labels) {
    if (label > 9) throw std::runtime_error(labels + ": a label that is no digit");
  }
  return digits;
}

void write_idx(const Digits& digits, const std::string& images, const std::string& labels) {
  const auto count = static_cast<uint32_t>(digits.size());
  write_idx_file(images, {count, Digits::kSide, Digits::kSide}, digits.pixels);
  write_idx_file(labels, {count}, digits.labels);
}

}  // namespace mnist
