// SPDX-License-Identifier: Apache-2.0
#include <collet/backend.h>
#include <collet/error.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/mutants/contraction.h"
#include "conformance/mutants/kernel_mutation.h"
#include "conformance/mutants/math_library.h"
#include "conformance/mutants/mutations.h"
#include "hlo/base/float_format.h"

/// \file
/// A test backend that applies one of mutations.def to programs with a given op, and forwards everything else to
/// another backend. Options of open: `mutant`, a name of all_mutants(); `backend`, the path of the other library, whose
/// memory the host must be able to access.

namespace collet::mutants {
namespace {

const collet_host* host = nullptr;
const collet_backend* behind = nullptr;
const Mutant* mutant = nullptr;
std::string own_name;

collet_status fail(collet_error* error, collet_status code, const std::string& message) {
  return collet_set_error(error, code, message.c_str());
}

struct Result {
  uint32_t element = 0, rank = 0;
  uint64_t elements = 0, width = 0;
  uint64_t rows = 1, columns = 1, batches = 1;  // the last two dimensions, and the first one
  uint64_t bytes() const { return elements * width; }
};

// The op to which the mutation applies, if its operands are arguments: their numbers, and that of its result, if it is
// a result of the program.
struct Place {
  std::vector<uint32_t> arguments;
  std::vector<Result> operands;
  std::vector<int64_t> dims;  // dimensions of the first operand
  std::optional<uint32_t> result;
};

struct Executable {
  collet_backend_executable* inner = nullptr;
  collet_backend_instance* instance = nullptr;
  bool hit = false;
  std::vector<Result> results, arguments;
  std::vector<std::vector<uint8_t>> first;  // results of the first run
  int runs = 0;
  std::optional<Contraction> contraction;
  std::optional<Place> place;
};
Executable* of(collet_backend_executable* handle) {
  return reinterpret_cast<Executable*>(handle);
}

collet_status open_instance(const collet_open_options* options, collet_backend_instance** out,
                            collet_instance_info* info, collet_error* error) {
  std::string path;
  for (uint32_t i = 0; i < options->pairs; ++i) {
    const std::string_view key = options->keys[i];
    if (key == "backend") path = options->values[i];
    if (key == "mutant") mutant = find_mutant(options->values[i]);
    if (key == "library" && !use_math_library(options->values[i]))
      return fail(error, COLLET_NOT_FOUND, std::string("there is no library at '") + options->values[i] + "'");
  }
  if (mutant == nullptr) return fail(error, COLLET_INVALID_ARGUMENT, "there is no such mutant");
  if (behind == nullptr) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = library ? dlsym(library, "collet_backend_entry") : nullptr;
    if (symbol == nullptr) return fail(error, COLLET_NOT_FOUND, "there is no backend at '" + path + "'");
    collet_backend_entry_fn entry = nullptr;
    std::memcpy(&entry, &symbol, sizeof entry);
    if (const collet_status code = entry(host, &behind, error)) return code;
  }
  collet_open_options inner{};
  inner.struct_size = sizeof inner;
  inner.device_count = options->device_count;
  inner.target = options->target;
  const char *key = "other_choices", *value = "1";
  if (mutant->other_choices) {
    inner.pairs = 1;
    inner.keys = &key;
    inner.values = &value;
  }
  if (const collet_status code = behind->open(&inner, out, info, error)) return code;
  own_name = "mutation";
  info->name = own_name.c_str();
  return COLLET_OK;
}

template <typename T>
T* at(collet_program* program, const collet_array& array, uint32_t index) {
  return const_cast<T*>(static_cast<const T*>(collet_array_at(program, array, index)));
}

void change_integers(collet_program* program, const collet_range& range, How how) {
  auto* integers = const_cast<int64_t*>(collet_integers(program, range));
  switch (how) {
    case How::TURNED:
      return std::reverse(integers, integers + range.count);
    case How::ONES:
      std::fill_n(integers, range.count, 1);
      return;
    case How::ZEROS:
      std::fill_n(integers, range.count, 0);
      return;
    default:
      if (range.count > 0) ++integers[range.count - 1];
  }
}

void change_attribute(collet_program* program, const collet_op* op) {
  char* field = reinterpret_cast<char*>(program) + program->records.offset + op->record + mutant->offset;
  const uint32_t width = mutant->field == FieldKind::Flag ? 4 : 8;
  if (mutant->offset + width > op->record_bytes) return;
  if (mutant->field == FieldKind::Range) {
    collet_range range{};
    std::memcpy(&range, field, sizeof range);
    change_integers(program, range, mutant->how);
  } else if (mutant->field == FieldKind::Number) {
    int64_t number = 0;
    std::memcpy(&number, field, sizeof number);
    number = mutant->how == How::ZERO ? 0 : mutant->how == How::ONE ? 1 : number + 1;
    std::memcpy(field, &number, sizeof number);
  } else {
    uint32_t flag = 0;
    std::memcpy(&flag, field, sizeof flag);
    flag = mutant->how == How::ZERO ? 0 : flag ^ 1;
    std::memcpy(field, &flag, sizeof flag);
  }
}

void change(collet_program* program) {
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    auto* op = at<collet_op>(program, program->ops, i);
    if (op->opcode != mutant->op) continue;
    if (mutant->kind == Mutant::Kind::Attribute) change_attribute(program, op);
    if (mutant->kind == Mutant::Kind::Operand && op->operands.count > 1)
      std::swap(*at<uint32_t>(program, program->refs, op->operands.first),
                *at<uint32_t>(program, program->refs, op->operands.first + 1));
  }
}

Result described(const collet_program* program, uint32_t value) {
  const collet_type* type = collet_value_type(program, value);
  const int64_t* dims = collet_integers(program, type->dims);
  const uint32_t rank = type->dims.count;
  const auto size = [&](uint32_t d) { return static_cast<uint64_t>(dims[d]); };
  return {type->element,
          rank,
          type->elements,
          collet_type_bytes(type->element),
          rank > 1 ? size(rank - 2) : 1,
          rank > 0 ? size(rank - 1) : 1,
          rank > 0 ? size(0) : 1};
}

std::optional<Place> find_place(const collet_program* program) {
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    const collet_op* op = collet_op_at(program, i);
    if (op->opcode != mutant->op) continue;
    Place place;
    for (uint32_t k = 0; k < op->operands.count; ++k) {
      const uint32_t value = collet_operand(program, op, k);
      const collet_value* v = collet_value_at(program, value);
      if (!(v->flags & COLLET_VALUE_ARGUMENT) || v->definition != 0) return std::nullopt;
      place.arguments.push_back(v->index);
      place.operands.push_back(described(program, value));
    }
    if (place.arguments.empty()) return std::nullopt;
    const collet_type* first = collet_value_type(program, collet_operand(program, op, 0));
    const int64_t* dims = collet_integers(program, first->dims);
    place.dims.assign(dims, dims + first->dims.count);
    for (uint32_t r = 0; r < entry->results.count; ++r)
      if (collet_ref_at(program, entry->results.first + r) == op->results.first) place.result = r;
    return place;
  }
  return std::nullopt;
}

collet_status compile(collet_backend_instance* instance, const collet_program* program,
                      const collet_compile_options* options, collet_backend_executable** out,
                      collet_executable_info* info, collet_rejection* rejection, collet_error* error) {
  auto made = std::make_unique<Executable>();
  made->instance = instance;
  for (uint32_t i = 0; i < program->ops.count; ++i) made->hit |= collet_op_at(program, i)->opcode == mutant->op;
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < entry->results.count; ++i)
    made->results.push_back(described(program, collet_ref_at(program, entry->results.first + i)));
  for (uint32_t i = 0; i < entry->arguments.count; ++i)
    made->arguments.push_back(described(program, entry->arguments.first + i));
  if (mutant->kind == Mutant::Kind::Contracted) made->contraction = find_contraction(program);
  if (mutant->kind == Mutant::Kind::Kernel || mutant->kind == Mutant::Kind::Index) made->place = find_place(program);
  std::vector<uint64_t> storage;
  if (made->hit && (mutant->kind == Mutant::Kind::Attribute || mutant->kind == Mutant::Kind::Operand)) {
    storage.resize((program->total_bytes + 7) / 8 + 8);
    auto* copy = reinterpret_cast<collet_program*>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
    std::memcpy(copy, program, program->total_bytes);
    change(copy);
    program = copy;
  }
  if (const collet_status code = behind->compile(instance, program, options, &made->inner, info, rejection, error))
    return code;
  *out = reinterpret_cast<collet_backend_executable*>(made.release());
  return COLLET_OK;
}

bool is_wanted(const Result& r) {
  const uint32_t kind = collet_type_kind(r.element);
  switch (mutant->types) {
    case Types::FLOATS:
      return r.element == COLLET_TYPE_F16 || r.element == COLLET_TYPE_BF16 || r.element == COLLET_TYPE_F32 ||
             r.element == COLLET_TYPE_F64;
    case Types::INTEGERS:
      return (kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED) &&
             r.element <= COLLET_TYPE_U64;  // types of whole bytes
    case Types::PREDS:
      return kind == COLLET_KIND_PRED;
    case Types::COMPLEX:
      return kind == COLLET_KIND_COMPLEX;
    case Types::SHORT_INTEGERS:
      return kind == COLLET_KIND_SIGNED && r.element > COLLET_TYPE_U64;
    case Types::SHORT_FLOATS:
      return kind == COLLET_KIND_FLOAT && r.width == 1;
    default:
      return true;
  }
}

uint64_t load(const uint8_t* from, uint64_t width) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, width);
  return bits;
}

uint64_t changed_float(uint64_t bits, uint32_t element) {
  const int mantissa_bits = element == COLLET_TYPE_F64    ? 52
                            : element == COLLET_TYPE_F32  ? 23
                            : element == COLLET_TYPE_BF16 ? 7
                                                          : 10;
  const int width = static_cast<int>(collet_type_bytes(element)) * 8;
  const uint64_t sign = uint64_t{1} << (width - 1), mantissa_mask = (uint64_t{1} << mantissa_bits) - 1;
  const uint64_t magnitude = bits & (sign - 1), mantissa = magnitude & mantissa_mask,
                 exponent = magnitude >> mantissa_bits;
  const uint64_t most = (sign - 1) >> mantissa_bits, infinity = most << mantissa_bits;
  const bool is_nan = magnitude > infinity, is_finite = magnitude < infinity;
  const uint64_t one = (most >> 1) << mantissa_bits;
  switch (mutant->result) {
    case ResultMutation::nan_becomes_zero:
      return is_nan ? 0 : bits;
    case ResultMutation::nan_becomes_infinity:
      return is_nan ? infinity : bits;
    case ResultMutation::infinity_becomes_largest:
      return magnitude == infinity ? bits - 1 : bits;
    case ResultMutation::negative_zero_becomes_zero:
      return bits == sign ? 0 : bits;
    case ResultMutation::denormals_become_zero:
      return exponent == 0 ? bits & sign : bits;
    case ResultMutation::largest_binade_overflows:
      return is_finite && exponent == most - 1 ? (bits & sign) | infinity : bits;
    case ResultMutation::smallest_binade_becomes_zero:
      return exponent == 1 ? bits & sign : bits;
    case ResultMutation::sixty_four_units_off:
      return is_finite && exponent > 0 ? bits ^ (uint64_t{1} << std::min(6, mantissa_bits - 2)) : bits;
    case ResultMutation::last_bits_cut:
      return is_finite ? bits & ~uint64_t{(mantissa & 7) == 7 ? uint64_t{7} : uint64_t{0}} : bits;
    case ResultMutation::last_bit_other:
      // Narrower types are rounded correctly, so their last bit is determined.
      return width >= 32 && is_finite && exponent > 0 ? bits ^ 1 : bits;
    case ResultMutation::nan_bits_other:
      return is_nan ? (bits ^ sign) | mantissa_mask : bits;
    case ResultMutation::declared_flush:
      return exponent == 0 ? bits & sign : bits;
    case ResultMutation::sign_of_small_lost:
      return magnitude < one && magnitude > 0 ? magnitude : bits;
    default:
      return bits;
  }
}

uint64_t changed_integer(uint64_t bits, uint32_t element) {
  const int width = static_cast<int>(collet_type_bytes(element)) * 8;
  const uint64_t top = uint64_t{1} << (width - 1), all = top | (top - 1);
  const bool has_sign = collet_type_kind(element) == COLLET_KIND_SIGNED;
  const uint64_t least = has_sign ? top : 0;
  switch (mutant->result) {
    case ResultMutation::least_becomes_next:
      return bits == least ? (bits + 1) & all : bits;
    case ResultMutation::upper_half_lost: {
      const uint64_t half = bits & ((uint64_t{1} << (width / 2)) - 1);
      const bool negative = has_sign && half >> (width / 2 - 1) & 1;
      return negative ? (half | ~((uint64_t{1} << (width / 2)) - 1)) & all : half;
    }
    case ResultMutation::one_off_above_sixteen_bits: {
      const uint64_t magnitude = has_sign && bits & top ? (~bits + 1) & all : bits;
      return magnitude >> 16 ? bits ^ 1 : bits;
    }
    default:
      return bits;
  }
}

uint8_t changed_short_float(uint8_t bits, uint32_t element) {
  if (mutant->result == ResultMutation::short_floats_cut) return bits & 0xFE;
  return std::isnan(decode_float(float_format(element), bits)) ? uint8_t{0x30} : bits;
}

void clear(std::vector<uint8_t>& data, uint64_t from, uint64_t width) {
  if (from * width < data.size())
    std::fill(data.begin() + static_cast<ptrdiff_t>(from * width), data.end(), uint8_t{0});
}

// Changes one result, according to the mutation.
void spoil(Executable& self, size_t index, const Result& r, std::vector<uint8_t>& data) {
  const uint64_t n = r.elements, w = r.width;
  switch (mutant->result) {
    case ResultMutation::true_is_255:
      for (uint8_t& byte : data) byte = byte ? 255 : 0;
      return;
    case ResultMutation::last_is_first:
      if (n > 1) std::memcpy(data.data() + (n - 1) * w, data.data(), w);
      return;
    case ResultMutation::tail_of_eight_missing:
      return clear(data, n / 8 * 8, w);
    case ResultMutation::tail_of_sixteen_missing:
      return clear(data, n / 16 * 16, w);
    case ResultMutation::element_64_of_more_wrong:
      if (n > 64) data[64 * w + w - 1] ^= collet_type_kind(r.element) == COLLET_KIND_PRED ? 1 : 0x40;
      return;
    case ResultMutation::beyond_1024_missing:
      return clear(data, 1024, w);
    case ResultMutation::beyond_65536_missing:
      return clear(data, 65536, w);
    case ResultMutation::scalars_missing:
      if (r.rank == 0) clear(data, 0, w);
      return;
    case ResultMutation::single_elements_missing:
      if (n == 1) clear(data, 0, w);
      return;
    case ResultMutation::rank_five_missing:
      if (r.rank >= 5) clear(data, 0, w);
      return;
    case ResultMutation::rank_six_missing:
      if (r.rank >= 6) clear(data, 0, w);
      return;
    case ResultMutation::columns_beyond_256_missing:
      for (uint64_t i = 0; r.columns > 256 && i < n; ++i)
        if (i % r.columns >= 256) std::memset(data.data() + i * w, 0, w);
      return;
    case ResultMutation::second_batch_is_first:
      if (r.rank >= 3 && r.batches > 1 && n > 0)
        std::memcpy(data.data() + n / r.batches * w, data.data(), n / r.batches * w);
      return;
    case ResultMutation::odd_last_row_missing:
      if (r.rows % 2 == 1 && r.rows > 1) clear(data, n - r.columns, w);
      return;
    case ResultMutation::imaginary_part_positive:
      for (uint64_t i = 0; i < n; ++i) data[(i + 1) * w - 1] &= 0x7F;
      return;
    case ResultMutation::short_integers_without_sign:
      for (uint8_t& byte : data)
        if (byte & 0x80) byte = static_cast<uint8_t>(-byte - 1);
      return;
    case ResultMutation::short_floats_without_nan:
    case ResultMutation::short_floats_cut:
      for (uint8_t& byte : data) byte = changed_short_float(byte, r.element);
      return;
    case ResultMutation::second_run_is_first:
      if (self.runs == 1) self.first.push_back(data);
      if (self.runs == 2 && index < self.first.size()) data = self.first[index];
      return;
    case ResultMutation::third_run_off:
      if (self.runs == 3 && n > 0) data[w - 1] ^= collet_type_kind(r.element) == COLLET_KIND_PRED ? 1 : 0x20;
      return;
    default:
      break;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t bits = load(data.data() + i * w, w);
    const uint64_t changed =
        mutant->types == Types::FLOATS ? changed_float(bits, r.element) : changed_integer(bits, r.element);
    std::memcpy(data.data() + i * w, &changed, w);
  }
}

collet_status copy_one(const Executable& self, collet_backend_buffer* buffer, uint64_t offset,
                       std::vector<uint8_t>& data, bool read, collet_error* error) {
  if (data.empty()) return COLLET_OK;
  const collet_place on_device = {buffer, nullptr, offset}, on_host = {nullptr, data.data(), 0};
  const collet_copy_region region = {read ? on_device : on_host, read ? on_host : on_device, data.size()};
  return behind->copy(self.instance, &region, 1, nullptr, error);
}

// Computes what a fused multiply-add would return from the arguments. Called before an execution that may overwrite them.
// `out` stays empty if they are not in buffers.
collet_status contracted(const Executable& self, const collet_launch& launch, std::vector<uint8_t>& out,
                         collet_error* error) {
  const Contraction& found = *self.contraction;
  std::vector<float> data[3];
  const uint32_t numbers[] = {found.a, found.b, found.c};
  for (size_t i = 0; i < 3; ++i) {
    const collet_argument& argument = launch.arguments[numbers[i]];
    std::vector<uint8_t> bytes(found.elements * sizeof(float));
    if (argument.buffer == nullptr || argument.bytes != bytes.size() || bytes.empty()) return COLLET_OK;
    if (const collet_status code = copy_one(self, argument.buffer, argument.offset, bytes, true, error)) return code;
    data[i].resize(found.elements);
    std::memcpy(data[i].data(), bytes.data(), bytes.size());
  }
  contract(data[0], data[1], data[2], data[0]);
  out.resize(found.elements * sizeof(float));
  std::memcpy(out.data(), data[0].data(), out.size());
  return COLLET_OK;
}

// Reads the bytes of an argument, which may be in the launch itself if it is small; empty if there are none.
collet_status read_argument(const Executable& self, const collet_argument& argument, uint64_t bytes,
                            std::vector<uint8_t>& out, collet_error* error) {
  out.assign(bytes, 0);
  if (argument.buffer != nullptr) return copy_one(self, argument.buffer, argument.offset, out, true, error);
  if (bytes <= sizeof argument.immediate) std::memcpy(out.data(), argument.immediate, bytes);
  return COLLET_OK;
}

bool has_whole_bytes(uint32_t element) {
  const uint32_t kind = collet_type_kind(element);
  if (kind == COLLET_KIND_FLOAT) return float_format(element).bits() % 8 == 0;
  return kind == COLLET_KIND_PRED || element <= COLLET_TYPE_U64;
}

using Arrays = std::vector<std::vector<uint8_t>>;

collet_status read_operands(const Executable& self, const collet_launch& launch, Arrays& out, collet_error* error) {
  for (size_t k = 0; k < self.place->arguments.size(); ++k)
    if (const collet_status code = read_argument(self, launch.arguments[self.place->arguments[k]],
                                                 self.place->operands[k].bytes(), out.emplace_back(), error))
      return code;
  return COLLET_OK;
}

// Computes each element of the result from those of the operands, with the faulty kernel.
collet_status run_kernel(const Executable& self, const collet_launch& launch, const Arrays& operands,
                         collet_error* error) {
  const Place& place = *self.place;
  const Result& r = self.results[*place.result];
  const collet_argument& to = launch.results[*place.result];
  bool fits = has_whole_bytes(r.element) && to.buffer != nullptr;
  for (const Result& operand : place.operands) fits &= has_whole_bytes(operand.element);
  if (!fits) return COLLET_OK;
  std::vector<uint8_t> data(r.bytes());
  if (const collet_status code = copy_one(self, to.buffer, to.offset, data, true, error)) return code;
  std::vector<Element> elements(operands.size());
  for (uint64_t i = 0; i < r.elements; ++i) {
    for (size_t k = 0; k < operands.size(); ++k) {
      const Result& operand = place.operands[k];
      if (operand.elements != r.elements && operand.elements != 1) return COLLET_OK;
      const uint64_t at_element = operand.elements == 1 ? 0 : i;
      elements[k] = {operand.element, load(operands[k].data() + at_element * operand.width, operand.width)};
    }
    const Element right{r.element, load(data.data() + i * r.width, r.width)};
    const uint64_t wrong = wrong_result(mutant->kernel, mutant->op, right, elements);
    std::memcpy(data.data() + i * r.width, &wrong, r.width);
  }
  return copy_one(self, to.buffer, to.offset, data, false, error);
}

// Changes operand `k` of the op to the indices that the fault would use. Returns false if it holds no indices.
bool change_indices(const Place& place, size_t k, std::vector<uint8_t>& data) {
  const Result& operand = place.operands[k];
  const uint32_t kind = collet_type_kind(operand.element);
  const size_t first = mutant->op == COLLET_OP_DYNAMIC_UPDATE_SLICE ? 2 : 1;
  const bool is_one = mutant->op == COLLET_OP_GATHER || mutant->op == COLLET_OP_SCATTER;
  if ((is_one ? k != 1 : k < first) || (kind != COLLET_KIND_SIGNED && kind != COLLET_KIND_UNSIGNED)) return false;
  if (operand.element > COLLET_TYPE_U64 || place.dims.empty()) return false;
  const int64_t size = is_one ? *std::max_element(place.dims.begin(), place.dims.end())
                              : place.dims[std::min(k - first, place.dims.size() - 1)];
  for (uint64_t i = 0; i < operand.elements; ++i) {
    const int shift = 64 - static_cast<int>(operand.width) * 8;
    const uint64_t bits = load(data.data() + i * operand.width, operand.width);
    const int64_t index =
        kind == COLLET_KIND_SIGNED ? static_cast<int64_t>(bits << shift) >> shift : static_cast<int64_t>(bits);
    const int64_t other = wrong_index(mutant->index, operand.element, index, size);
    std::memcpy(data.data() + i * operand.width, &other, operand.width);
  }
  return true;
}

// Runs with changed indices, and restores the original ones.
collet_status run_with_indices(const Executable& self, const collet_launch* launches, uint32_t count, uint64_t run_id,
                               const std::vector<Arrays>& operands, collet_error* error) {
  const Place& place = *self.place;
  std::vector<std::vector<collet_argument>> arguments(count);
  std::vector<collet_launch> changed(launches, launches + count);
  for (uint32_t l = 0; l < count; ++l) {
    arguments[l].assign(launches[l].arguments, launches[l].arguments + launches[l].argument_count);
    for (size_t k = 0; k < place.arguments.size(); ++k) {
      std::vector<uint8_t> data = operands[l][k];
      if (!change_indices(place, k, data)) continue;
      collet_argument& argument = arguments[l][place.arguments[k]];
      if (argument.buffer == nullptr) {
        std::memcpy(argument.immediate, data.data(), std::min(data.size(), sizeof argument.immediate));
      } else if (const collet_status code = copy_one(self, argument.buffer, argument.offset, data, false, error)) {
        return code;
      }
    }
    changed[l].arguments = arguments[l].data();
  }
  const collet_status ran = behind->execute(self.inner, changed.data(), count, run_id, error);
  for (uint32_t l = 0; l < count; ++l) {
    for (size_t k = 0; k < place.arguments.size(); ++k) {
      std::vector<uint8_t> data = operands[l][k];
      const collet_argument& argument = launches[l].arguments[place.arguments[k]];
      if (argument.buffer == nullptr || k == 0 || collet_type_kind(place.operands[k].element) == COLLET_KIND_FLOAT)
        continue;
      if (const collet_status code = copy_one(self, argument.buffer, argument.offset, data, false, error)) return code;
    }
  }
  return ran;
}

collet_status execute(collet_backend_executable* handle, const collet_launch* launches, uint32_t count, uint64_t run_id,
                      collet_error* error) {
  Executable& self = *of(handle);
  std::vector<std::vector<uint8_t>> fused(count);
  for (uint32_t l = 0; self.contraction && l < count; ++l)
    if (const collet_status code = contracted(self, launches[l], fused[l], error)) return code;
  std::vector<Arrays> operands(count);
  for (uint32_t l = 0; self.place && l < count; ++l)
    if (const collet_status code = read_operands(self, launches[l], operands[l], error)) return code;
  if (self.place && mutant->kind == Mutant::Kind::Index)
    return run_with_indices(self, launches, count, run_id, operands, error);
  if (const collet_status code = behind->execute(self.inner, launches, count, run_id, error)) return code;
  for (uint32_t l = 0; self.place && self.place->result && l < count; ++l)
    if (const collet_status code = run_kernel(self, launches[l], operands[l], error)) return code;
  for (uint32_t l = 0; self.contraction && l < count; ++l) {
    const collet_argument& result = launches[l].results[self.contraction->result];
    if (const collet_status code = copy_one(self, result.buffer, result.offset, fused[l], false, error)) return code;
  }
  if (!self.hit || mutant->kind != Mutant::Kind::Result) return COLLET_OK;
  ++self.runs;
  for (uint32_t l = 0; l < count; ++l) {
    const bool arguments = mutant->result == ResultMutation::argument_overwritten;
    const std::vector<Result>& all = arguments ? self.arguments : self.results;
    const collet_argument* places = arguments ? launches[l].arguments : launches[l].results;
    for (size_t i = 0; i < all.size() && i < (arguments ? launches[l].argument_count : launches[l].result_count); ++i) {
      if (!is_wanted(all[i]) || places[i].buffer == nullptr) continue;
      std::vector<uint8_t> data(all[i].bytes());
      if (const collet_status code = copy_one(self, places[i].buffer, places[i].offset, data, true, error)) return code;
      if (arguments) {
        if (!data.empty()) ++data[0];
      } else {
        spoil(self, i, all[i], data);
      }
      if (const collet_status code = copy_one(self, places[i].buffer, places[i].offset, data, false, error))
        return code;
      if (arguments) break;
    }
  }
  return COLLET_OK;
}

void release(collet_backend_executable* handle) {
  behind->release(of(handle)->inner);
  delete of(handle);
}

}  // namespace
}  // namespace collet::mutants

extern "C" COLLET_EXPORT collet_status collet_backend_entry(const collet_host* with, const collet_backend** out_backend,
                                                            collet_error* error) {
  using namespace collet::mutants;
  static collet_backend table{};
  if (with->abi_major != COLLET_ABI_MAJOR) return fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  host = with;
  table.struct_size = sizeof table;
  table.abi_major = COLLET_ABI_MAJOR;
  table.abi_minor = COLLET_ABI_MINOR;
  table.open = open_instance;
  table.close = [](collet_backend_instance* instance) { behind->close(instance); };
  table.device_info = [](collet_backend_instance* instance, uint32_t device, collet_device_info* info,
                         collet_error* e) {
    const collet_status code = behind->device_info(instance, device, info, e);
    if (code == COLLET_OK && mutant->result == ResultMutation::declared_flush)
      info->traits |= COLLET_TRAIT_FLUSHES_DENORMALS;
    return code;
  };
  table.alloc = [](collet_backend_instance* instance, uint32_t device, uint32_t space, uint64_t bytes,
                   uint64_t alignment, collet_backend_buffer** out, void** pointer, collet_error* e) {
    return behind->alloc(instance, device, space, bytes, alignment, out, pointer, e);
  };
  table.free = [](collet_backend_instance* instance, collet_backend_buffer* buffer) { behind->free(instance, buffer); };
  table.copy = [](collet_backend_instance* instance, const collet_copy_region* regions, uint32_t count,
                  const collet_sync* sync, collet_error* e) { return behind->copy(instance, regions, count, sync, e); };
  table.supports = [](collet_backend_instance* instance, uint32_t device, const collet_program* program,
                      const uint32_t* ops, uint32_t count, collet_verdict* verdicts,
                      collet_error* e) { return behind->supports(instance, device, program, ops, count, verdicts, e); };
  table.compile = compile;
  table.execute = execute;
  table.release = release;
  *out_backend = &table;
  return COLLET_OK;
}
