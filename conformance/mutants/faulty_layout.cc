// SPDX-License-Identifier: Apache-2.0
// The table "layout" of the faulty backend. With the faults of layouts, f32 matrices are column-major in rows of four as arguments,
// and in tiles of 8 x 8 as results; with all other faults they are dense.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "conformance/mutants/faulty.h"

namespace collet::mutants {
namespace {

constexpr uint64_t kElement = sizeof(float);
constexpr uint32_t kRun = 4, kTile = 8;

enum class Form : uint8_t { Dense, Columns, Tiles };

struct Matrix {
  uint64_t rows = 0, columns = 0;
  Form form = Form::Dense;

  uint64_t bytes() const {
    switch (form) {
      case Form::Columns:
        return columns * (rows + kRun - 1) / kRun * kRun * kElement;
      case Form::Tiles:
        return tiles(rows) * tiles(columns) * kTile * kTile * kElement;
      case Form::Dense:
        break;
    }
    return rows * columns * kElement;
  }
  // Returns the place of an element, in elements.
  uint64_t place(uint64_t row, uint64_t column) const {
    switch (form) {
      case Form::Columns:
        return column * ((rows + kRun - 1) / kRun * kRun) + row;
      case Form::Tiles:
        return (row / kTile * tiles(columns) + column / kTile) * kTile * kTile + row % kTile * kTile + column % kTile;
      case Form::Dense:
        break;
    }
    return row * columns + column;
  }

 private:
  static uint64_t tiles(uint64_t size) { return (size + kTile - 1) / kTile; }
};

collet_layout layout_of(const Matrix& m) {
  collet_layout out{};
  if (m.form == Form::Dense) return out;
  out.rank = 2;
  out.bytes = m.bytes();
  const bool by_columns = m.form == Form::Columns;
  out.order[0] = by_columns ? 1 : 0;
  out.order[1] = by_columns ? 0 : 1;
  out.tile_rank[0] = by_columns ? 1 : 2;
  out.tile[0][0] = by_columns ? kRun : kTile;
  out.tile[0][1] = by_columns ? 0 : kTile;
  return out;
}

Form form_of(const collet_layout& layout) {
  return layout.rank == 0 ? Form::Dense : layout.order[0] == 1 ? Form::Columns : Form::Tiles;
}

// Copies the elements of an array from one form to another.
void move(const uint8_t* from, const Matrix& from_form, uint8_t* to, const Matrix& to_form) {
  for (uint64_t row = 0; row < from_form.rows; ++row)
    for (uint64_t column = 0; column < from_form.columns; ++column)
      std::memcpy(to + to_form.place(row, column) * kElement, from + from_form.place(row, column) * kElement, kElement);
}

bool is_aliased(const collet_program* program, uint32_t result) {
  for (uint32_t i = 0; i < program->aliases.count; ++i)
    if (collet_alias_at(program, i)->result == result) return true;
  return false;
}

// The form of an argument or result; nothing where it has no layout. A result that shares the memory of an argument has its form.
std::optional<Matrix> matrix_of(const Executable& self, bool is_result, uint32_t index) {
  if (!has_layouts()) return std::nullopt;
  const auto* program = reinterpret_cast<const collet_program*>(self.block.data());
  const collet_region* entry = collet_region_at(program, 0);
  const uint32_t value =
      is_result ? collet_ref_at(program, entry->results.first + index) : entry->arguments.first + index;
  const collet_type* type = collet_value_type(program, value);
  const bool has_none =
      !is_result && (collet_value_at(program, value)->flags & (COLLET_VALUE_SCALAR | COLLET_VALUE_CONSTANT)) != 0;
  if (type->element != COLLET_TYPE_F32 || type->dims.count != 2 || type->bytes == 0 || has_none) return std::nullopt;
  const auto size = [&](uint32_t i) { return static_cast<uint64_t>(collet_integers(program, type->dims)[i]); };
  return Matrix{size(0), size(1), is_result && !is_aliased(program, index) ? Form::Tiles : Form::Columns};
}

std::atomic<uint32_t> answers{0};
std::atomic<uint64_t> newest_rows{0};  // of a matrix of the executable that was compiled last

collet_status of_table(collet_backend_executable* p, uint32_t is_result, uint32_t index, collet_layout* layout,
                       collet_error*) {
  const std::optional<Matrix> matrix = matrix_of(*of(p), is_result != 0, index);
  if (!matrix) return COLLET_OK;
  Matrix said = *matrix;
  if (is(Fault::layout_wavers) && answers++ % 8 == 7) said.form = Form::Tiles;
  *layout = layout_of(said);
  if (is(Fault::layout_bytes_without_padding)) layout->bytes = said.rows * said.columns * kElement;
  if (is(Fault::layout_order_names_one_twice)) layout->order[1] = layout->order[0];
  return COLLET_OK;
}

collet_status convert(collet_backend_instance* p, uint32_t, uint32_t element, uint32_t rank, const int64_t* dims,
                      const collet_place* from, const collet_layout* from_layout, const collet_place* to,
                      const collet_layout* to_layout, const collet_sync*, collet_error* error) {
  Instance* self = of(p);
  if (is(Fault::layout_convert_declines) || element != COLLET_TYPE_F32 || rank != 2)
    return fail(error, COLLET_UNIMPLEMENTED, "only f32 matrices");
  uint64_t rows = static_cast<uint64_t>(dims[0]), columns = static_cast<uint64_t>(dims[1]);
  if (is(Fault::convert_keeps_first_shape)) {
    static const uint64_t first = rows;
    rows = std::min(rows, first);
  }
  const Matrix before{rows, columns, form_of(*from_layout)};
  Matrix after{rows, columns, form_of(*to_layout)};
  if (is(Fault::convert_knows_one_layout) && before.form != Form::Dense && after.form != Form::Dense)
    after.form = before.form;
  Bytes in(before.bytes()), out(after.bytes());
  get(self, from->buffer, is(Fault::convert_ignores_source_offset) ? 0 : from->offset, in.data(), in.size());
  // What is padding stays as it is.
  get(self, to->buffer, to->offset, out.data(), out.size());
  move(in.data(), before, out.data(), after);
  put(self, to->buffer, is(Fault::convert_ignores_target_offset) ? 0 : to->offset, out.data(), out.size());
  if (is(Fault::convert_writes_padding_of_dense) && after.form == Form::Dense) {
    const Bytes zeros(16);
    if (is_inside({to->buffer, nullptr, to->offset + out.size()}, zeros.size()))
      put(self, to->buffer, to->offset + out.size(), zeros.data(), zeros.size());
  }
  return COLLET_OK;
}

// Allocates a dense buffer of the inner backend for an argument or result.
bool make_dense(Executable& self, uint32_t device, uint64_t bytes, Buffer& out, collet_argument& argument,
                collet_error* error) {
  void* ignored = nullptr;
  if (behind->alloc(self.owner->inner, device, 0, bytes, self.owner->alignment, &out.inner, &ignored, error))
    return false;
  out.bytes = bytes;
  argument.buffer = reinterpret_cast<collet_backend_buffer*>(&out);
  argument.offset = 0;
  argument.bytes = bytes;
  argument.layout = 0;
  return true;
}

// True if there is a byte of padding that is not zero.
bool has_padding(const Bytes& bytes, const Matrix& matrix) {
  std::vector<bool> used(bytes.size() / kElement);
  for (uint64_t row = 0; row < matrix.rows; ++row)
    for (uint64_t column = 0; column < matrix.columns; ++column) used[matrix.place(row, column)] = true;
  for (size_t i = 0; i < used.size(); ++i)
    for (size_t b = 0; !used[i] && b < kElement; ++b)
      if (bytes[i * kElement + b] != 0) return true;
  return false;
}

}  // namespace

bool has_layouts() {
  return is(Fault::layout_wavers) || is(Fault::layout_bytes_without_padding) ||
         is(Fault::layout_order_names_one_twice) || is(Fault::layout_of_first_run_only) ||
         is(Fault::layout_padding_is_read) || is(Fault::layout_of_result_ignored) ||
         is(Fault::layout_of_newest_executable) || is(Fault::convert_ignores_source_offset) ||
         is(Fault::convert_ignores_target_offset) || is(Fault::convert_knows_one_layout) ||
         is(Fault::convert_writes_padding_of_dense) || is(Fault::convert_keeps_first_shape) ||
         is(Fault::layout_padded) || is(Fault::layout_padded_in_programs) || is(Fault::layout_without_convert) ||
         is(Fault::layout_convert_declines);
}

uint64_t layout_bytes(const Executable& self, bool is_result, uint32_t index) {
  const std::optional<Matrix> matrix = matrix_of(self, is_result, index);
  return matrix ? matrix->bytes() : (is_result ? self.result_bytes : self.argument_bytes)[index];
}

bool has_layout(const Executable& self, bool is_result, uint32_t index) {
  return matrix_of(self, is_result, index).has_value();
}

collet_status run_dense(Executable& self, const collet_launch& launch,
                        const std::function<collet_status(const collet_launch&)>& run, collet_error* error) {
  const int number = self.layout_runs++;
  std::vector<collet_argument> arguments(launch.arguments, launch.arguments + launch.argument_count);
  std::vector<collet_argument> results(launch.results, launch.results + launch.result_count);
  std::vector<Buffer> buffers(arguments.size() + results.size());
  const auto free_all = [&] {
    for (const Buffer& buffer : buffers)
      if (buffer.inner) behind->free(self.owner->inner, buffer.inner);
  };
  bool reads_padding = false;
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    std::optional<Matrix> matrix = matrix_of(self, false, i);
    if (!matrix) continue;
    if (arguments[i].flags & COLLET_ARG_PREPARED) {  // its prepared form is dense
      arguments[i].layout = 0;
      arguments[i].bytes = self.argument_bytes[i];
      continue;
    }
    Bytes in(matrix->bytes()), out(self.argument_bytes[i]);
    get(self.owner, arguments[i].buffer, arguments[i].offset, in.data(), in.size());
    reads_padding |= has_padding(in, *matrix);
    if (is(Fault::layout_of_first_run_only) && number > 0) matrix->form = Form::Dense;
    // The fault takes the rows of the executable that was compiled last.
    if (is(Fault::layout_of_newest_executable) && newest_rows != 0 && newest_rows < matrix->rows)
      matrix->rows = newest_rows;
    move(in.data(), *matrix, out.data(), {matrix->rows, matrix->columns, Form::Dense});
    if (!make_dense(self, launch.device, out.size(), buffers[i], arguments[i], error))
      return free_all(), COLLET_INTERNAL;
    put(self.owner, arguments[i].buffer, 0, out.data(), out.size());
  }
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (!matrix_of(self, true, i)) continue;
    if (!make_dense(self, launch.device, self.result_bytes[i], buffers[arguments.size() + i], results[i], error))
      return free_all(), COLLET_INTERNAL;
  }
  collet_launch changed = launch;
  changed.arguments = arguments.data();
  changed.results = results.data();
  const collet_status status = run(changed);
  for (uint32_t i = 0; status == COLLET_OK && i < results.size(); ++i) {
    const std::optional<Matrix> matrix = matrix_of(self, true, i);
    if (!matrix) continue;
    Bytes in(self.result_bytes[i]), out(matrix->bytes(), 0x3c);
    get(self.owner, results[i].buffer, 0, in.data(), in.size());
    move(in.data(), {matrix->rows, matrix->columns, Form::Dense}, out.data(), *matrix);
    if (is(Fault::layout_of_result_ignored)) std::copy(in.begin(), in.end(), out.begin());
    if (is(Fault::layout_padding_is_read) && reads_padding) out[2] ^= 0x40;
    put(self.owner, launch.results[i].buffer, launch.results[i].offset, out.data(), out.size());
  }
  free_all();
  return status;
}

Bytes read_dense(Executable& self, uint32_t index, const collet_argument& value) {
  Bytes out(self.argument_bytes[index]);
  const std::optional<Matrix> matrix = matrix_of(self, false, index);
  Bytes in(matrix ? matrix->bytes() : out.size());
  get(self.owner, value.buffer, value.offset, in.data(), in.size());
  if (!matrix) return in;
  move(in.data(), *matrix, out.data(), {matrix->rows, matrix->columns, Form::Dense});
  return out;
}

void note_rows(const Executable& self) {
  newest_rows = 0;
  for (uint32_t i = 0; i < self.argument_bytes.size(); ++i)
    if (const std::optional<Matrix> matrix = matrix_of(self, false, i); matrix && newest_rows == 0)
      newest_rows = matrix->rows;
}

const void* layout_table() {
  static const collet_layout_table functions = {sizeof(collet_layout_table), 0, of_table, convert};
  static const collet_layout_table only_of = {sizeof(collet_layout_table), 0, of_table, nullptr};
  if (!has_layouts()) return nullptr;
  return is(Fault::layout_without_convert) ? &only_of : &functions;
}

}  // namespace collet::mutants
