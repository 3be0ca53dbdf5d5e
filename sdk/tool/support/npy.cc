// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/npy.h"

#include <boost/crc.hpp>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

namespace collet::tool {
namespace {

using hlo::Literal;
using hlo::Shape;
using hlo::Type;

constexpr std::string_view kMagic = "\x93NUMPY";

uint64_t number_at(std::string_view bytes, size_t offset, size_t width) {
  uint64_t out = 0;
  for (size_t i = 0; i < width; ++i) out |= uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  return out;
}

std::optional<Type> type_of(std::string_view code) {
  constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"b1", Type::PRED}, {"i1", Type::S8},  {"i2", Type::S16}, {"i4", Type::S32},  {"i8", Type::S64},
      {"u1", Type::U8},   {"u2", Type::U16}, {"u4", Type::U32}, {"u8", Type::U64},  {"f2", Type::F16},
      {"f4", Type::F32},  {"f8", Type::F64}, {"c8", Type::C64}, {"c16", Type::C128}};
  for (const auto& [text, type] : kTypes)
    if (text == code) return type;
  return std::nullopt;
}

// Returns what stands behind 'key': in the header, which is a dictionary of Python's.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return {};
  size_t begin = header.find(':', at);
  if (begin == std::string_view::npos) return {};
  begin = header.find_first_not_of(' ', begin + 1);
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

Expected<std::vector<int64_t>> read_dims(std::string_view text) {
  std::vector<int64_t> dims;
  const size_t close = text.find(')');
  if (!text.starts_with('(') || close == std::string_view::npos) return invalid_argument("its header has no shape");
  text = text.substr(1, close - 1);
  double elements = 1;
  while (true) {
    const size_t digit = text.find_first_not_of(" ,");
    if (digit == std::string_view::npos) return dims;
    text.remove_prefix(digit);
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0) return invalid_argument("its header has no shape");
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    dims.push_back(dim);
    elements *= static_cast<double>(dim);
    if (elements > 0x1p40) return invalid_argument("its shape is too large");
  }
}

// Brings elements in Fortran's order, the first dimension the fastest, into row-major order.
Literal row_major(const Literal& from) {
  Literal out = Literal::zeros(from.shape());
  const auto dims = from.shape().dims();
  const auto width = static_cast<size_t>(hlo::type_info(from.type()).bytes());
  std::vector<int64_t> index(dims.size(), 0);
  uint8_t* to = out.mutable_bytes();
  for (int64_t i = 0; i < out.element_count(); ++i) {
    int64_t at = 0;
    for (size_t d = dims.size(); d-- > 0;) at = at * dims[d] + index[d];
    std::memcpy(to + static_cast<size_t>(i) * width, from.bytes() + static_cast<size_t>(at) * width, width);
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
  return out;
}

/// An entry of a zip file.
struct Entry {
  std::string name;
  std::string_view data;
};

// Takes the sizes and offset that do not fit 32 bits from the extra field of a zip file's entry.
void read_zip64(std::string_view extra, uint64_t& whole, uint64_t& packed, uint64_t& offset) {
  while (extra.size() >= 4) {
    const uint64_t kind = number_at(extra, 0, 2), size = number_at(extra, 2, 2);
    if (size + 4 > extra.size()) return;
    if (kind == 1) {
      std::string_view fields = extra.substr(4, size);
      for (uint64_t* field : {&whole, &packed, &offset}) {
        if (*field != 0xFFFFFFFF || fields.size() < 8) continue;
        *field = number_at(fields, 0, 8);
        fields.remove_prefix(8);
      }
    }
    extra.remove_prefix(size + 4);
  }
}

Expected<std::vector<Entry>> zip_entries(std::string_view bytes) {
  constexpr size_t kEnd = 22, kCentral = 46, kLocal = 30;
  constexpr uint64_t kEndMark = 0x06054B50, kCentralMark = 0x02014B50, kLocalMark = 0x04034B50;
  const Status damaged = invalid_argument("it is no zip file as numpy.savez writes it, or it is damaged");
  size_t end = std::string_view::npos;
  for (size_t back = kEnd; back <= bytes.size() && back < kEnd + 65536 && end == std::string_view::npos; ++back)
    if (number_at(bytes, bytes.size() - back, 4) == kEndMark) end = bytes.size() - back;
  if (end == std::string_view::npos) return damaged;
  uint64_t count = number_at(bytes, end + 10, 2);
  uint64_t at = number_at(bytes, end + 16, 4);
  constexpr size_t kLocator = 20, kLargeEnd = 56;
  constexpr uint64_t kLocatorMark = 0x07064B50, kLargeEndMark = 0x06064B50;
  if (count == 0xFFFF ||
      at == 0xFFFFFFFF) {  // the numbers are in another record, which a locator before this one names
    if (end < kLocator || number_at(bytes, end - kLocator, 4) != kLocatorMark) return damaged;
    const uint64_t large = number_at(bytes, end - kLocator + 8, 8);
    if (large > bytes.size() || bytes.size() - large < kLargeEnd || number_at(bytes, large, 4) != kLargeEndMark)
      return damaged;
    count = number_at(bytes, large + 32, 8);
    at = number_at(bytes, large + 48, 8);
  }
  std::vector<Entry> out;
  for (uint64_t i = 0; i < count; ++i) {
    if (at > bytes.size() || bytes.size() - at < kCentral || number_at(bytes, at, 4) != kCentralMark) return damaged;
    const uint64_t method = number_at(bytes, at + 10, 2), crc = number_at(bytes, at + 16, 4);
    uint64_t packed = number_at(bytes, at + 20, 4), whole = number_at(bytes, at + 24, 4),
             offset = number_at(bytes, at + 42, 4);
    const uint64_t name = number_at(bytes, at + 28, 2), extra = number_at(bytes, at + 30, 2),
                   comment = number_at(bytes, at + 32, 2);
    if (at + kCentral + name + extra > bytes.size()) return damaged;
    Entry entry;
    entry.name = bytes.substr(at + kCentral, name);
    read_zip64(bytes.substr(at + kCentral + name, extra), whole, packed, offset);
    at += kCentral + name + extra + comment;
    if (entry.name.ends_with(".npy")) entry.name.resize(entry.name.size() - 4);
    if (method != 0) return invalid_argument("array '" + entry.name + "' is compressed: write the file by numpy.savez");
    if (offset > bytes.size() || bytes.size() - offset < kLocal || number_at(bytes, offset, 4) != kLocalMark)
      return damaged;
    const uint64_t begin = offset + kLocal + number_at(bytes, offset + 26, 2) + number_at(bytes, offset + 28, 2);
    if (packed != whole || begin > bytes.size() || whole > bytes.size() - begin) return damaged;
    entry.data = bytes.substr(begin, whole);
    boost::crc_32_type sum;
    sum.process_bytes(entry.data.data(), entry.data.size());
    if (sum.checksum() != crc) return invalid_argument("array '" + entry.name + "' is damaged: its checksum differs");
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Expected<Literal> read_npy(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 10) return invalid_argument("it is no file of numpy.save");
  const size_t width = bytes[6] == 1 ? 2 : 4;
  if (bytes[6] < 1 || bytes[6] > 3 || bytes.size() < 8 + width)
    return invalid_argument("it is a file of an unknown version of numpy.save");
  const uint64_t length = number_at(bytes, 8, width);
  if (length > bytes.size() - 8 - width) return invalid_argument("its header is cut off");
  const std::string_view header = bytes.substr(8 + width, length);
  std::string_view code = value_of(header, "descr");
  if (!code.starts_with('\'')) return invalid_argument("its elements are records, or its header is damaged");
  code = code.substr(1, code.find('\'', 1) - 1);
  const std::optional<Type> type = code.empty() ? std::nullopt : type_of(code.substr(1));
  if (!type || (code[0] != '<' && code[0] != '|'))
    return invalid_argument("its elements are '" + std::string(code) +
                            "'; little-endian booleans, integers, floats and complex numbers are read");
  COLLET_ASSIGN(const std::vector<int64_t> dims, read_dims(value_of(header, "shape")));
  const Shape shape = Shape::array(*type, dims);
  const std::string_view data = bytes.substr(8 + width + length);
  if (data.size() != static_cast<uint64_t>(shape.byte_size()))
    return invalid_argument("it has " + std::to_string(data.size()) + " bytes of elements; " + shape.to_string() +
                            " needs " + std::to_string(shape.byte_size()));
  Literal out = Literal::from_bytes(shape, data.data());
  return value_of(header, "fortran_order").starts_with("True") ? row_major(out) : out;
}

Expected<std::vector<std::pair<std::string, Literal>>> read_npz(std::string_view bytes) {
  COLLET_ASSIGN(const std::vector<Entry> entries, zip_entries(bytes));
  std::vector<std::pair<std::string, Literal>> out;
  for (const Entry& entry : entries) {
    Expected<Literal> array = read_npy(entry.data);
    if (!array.ok()) return array.status().with_prefix("array '" + entry.name + "': ");
    out.emplace_back(entry.name, *std::move(array));
  }
  return out;
}

Expected<std::vector<Literal>> in_order_of_parameters(std::vector<std::pair<std::string, Literal>> arrays,
                                                      const std::vector<std::string>& parameters) {
  std::vector<Literal> out(parameters.size());
  std::string names;
  bool any = false;
  for (const auto& [name, array] : arrays) {
    names += (names.empty() ? "" : ", ") + name;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::string number = std::to_string(i);
      if (name != parameters[i] && name != number && name != "arg" + number && name != "arr_" + number) continue;
      out[i] = array;
      any = true;
    }
  }
  if (!any && arrays.size() == parameters.size()) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(arrays[i].second);
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].valid()) continue;
    const std::string name = parameters[i].empty() ? "" : " (" + parameters[i] + ")";
    return invalid_argument("there is no array for parameter " + std::to_string(i) + name + " among: " + names);
  }
  return out;
}

Expected<Literal> as_argument(const Literal& array, const Shape& parameter) {
  const Status other =
      invalid_argument("the array is " + array.shape().to_string() + "; " + parameter.to_string() + " is needed");
  const Type from = array.type(), to = parameter.type();
  if (!parameter.is_array() || !array.shape().same_dims(parameter)) return other;
  if (from == to) return array.reshaped(parameter);
  const bool floats = hlo::is_float(from) && hlo::is_float(to), integers = hlo::is_integer(from) && hlo::is_integer(to);
  if (!floats && !integers) return other;
  Literal out = Literal::zeros(parameter);
  for (int64_t i = 0; i < array.element_count(); ++i) {
    if (floats) {
      out.set_double(i, array.as_double(i));
      continue;
    }
    out.set_int(i, array.as_int(i));
    const bool sign_differs = hlo::is_signed(from) != hlo::is_signed(to) && array.as_int(i) < 0;
    if (out.as_int(i) != array.as_int(i) || sign_differs)
      return invalid_argument("element " + std::to_string(i) + " of the array does not fit " + parameter.to_string());
  }
  return out;
}

}  // namespace collet::tool
