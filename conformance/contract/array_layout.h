// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/tables.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/ir/shape.h"

/// \file
/// Arrays that are placed in memory as the table "layout" says, element by element, as tables.h defines it.

namespace collet::conformance {

class Instance;
class TestProgram;
class Executable;

/// The layout of one array. Made without a layout, it is dense and row-major.
class ArrayLayout {
 public:
  ArrayLayout() = default;
  explicit ArrayLayout(const hlo::Shape& shape, const collet_layout& layout = {}) : shape_(shape), layout_(layout) {}

  bool is_dense() const;
  const collet_layout& get() const { return layout_; }
  const hlo::Shape& shape() const { return shape_; }
  uint64_t bytes() const { return is_dense() ? static_cast<uint64_t>(shape_.byte_size()) : layout_.bytes; }
  /// Returns what is wrong with the layout; an empty string if nothing is. The other functions need a layout that is right.
  std::string complaint() const;
  /// Returns the bytes that the array takes in the layout, with padding; the layout has as many or more.
  uint64_t needed_bytes() const;
  /// Writes an array to the bytes() bytes at `to`. Does not change the bytes of padding.
  void write(const hlo::Literal& from, uint8_t* to) const;
  /// Reads an array from bytes() bytes.
  hlo::Literal read(const uint8_t* from) const;
  bool operator==(const ArrayLayout& other) const;

 private:
  /// Returns for each element, in row-major order, its number among the places of the array in memory.
  std::vector<uint64_t> places() const;
  /// Returns the number of places of the array in memory, with padding.
  uint64_t place_count() const;

  hlo::Shape shape_;
  collet_layout layout_{};
};

/// The layouts that an executable states, without those of constants, which have none.
struct Layouts {
  std::vector<ArrayLayout> arguments, results;
  bool any() const;
};

/// Asks an executable for the layouts of its arguments and results. Records a failure, and returns nothing, if an answer fails or
/// is not valid.
std::optional<Layouts> layouts_of(Instance& instance, const TestProgram& program, const Executable& executable);

}  // namespace collet::conformance
