// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode_file.h"

#include <array>

#include "hlo/stablehlo/bytecode.h"

namespace collet::hlo::mlir {
namespace {

constexpr std::string_view kMagic = "ML\xEFR";
constexpr uint64_t kNewestVersion = 6;

enum SectionId : uint8_t {
  kString,
  kDialect,
  kAttrType,
  kAttrTypeOffset,
  kIr,
  kResource,
  kResourceOffset,
  kDialectVersions,
  kProperties,
  kSectionCount
};

Status read_strings(const BytecodeSection& section, BytecodeFile& file) {
  ByteReader reader(section.payload, section.offset);
  const uint64_t n = reader.count();
  std::vector<uint64_t> lengths(n);
  // Lengths are in reverse order, so offsets count from the end of the section.
  for (uint64_t i = n; i-- > 0;) lengths[i] = reader.varint();
  file.strings.resize(n);
  for (uint64_t i = 0; i < n; ++i) {
    const std::string_view text = reader.take(lengths[i]);
    if (reader.failed() || text.empty() || text.back() != '\0')
      return bytecode_error(reader.position(), "the string table is damaged");
    file.strings[i] = text.substr(0, text.size() - 1);
  }
  return {};
}

Status read_dialects(const BytecodeSection& section, BytecodeFile& file) {
  ByteReader reader(section.payload, section.offset);
  const auto damaged = [&] { return bytecode_error(reader.position(), "the dialect table is damaged"); };
  const uint64_t n = reader.count();
  for (uint64_t i = 0; i < n; ++i) {
    bool has_version = false;
    const uint64_t name = file.version >= 1 ? reader.flagged_varint(&has_version) : reader.varint();
    if (reader.failed() || name >= file.strings.size()) return damaged();
    file.dialects.push_back(file.strings[name]);
    BytecodeSection version;
    if (has_version && !read_section(reader, &version)) return damaged();
  }
  if (file.version >= 4) {
    const uint64_t total = reader.count();
    if (reader.failed()) return damaged();
    file.op_names.reserve(total);
  }
  while (!reader.done()) {
    const uint64_t dialect = reader.varint();
    const uint64_t count = reader.count();
    if (reader.failed() || dialect >= file.dialects.size()) return damaged();
    for (uint64_t i = 0; i < count; ++i) {
      bool registered = false;
      const uint64_t name = file.version >= 5 ? reader.flagged_varint(&registered) : reader.varint();
      if (reader.failed() || name >= file.strings.size()) return damaged();
      file.op_names.push_back({static_cast<uint32_t>(dialect), file.strings[name]});
    }
  }
  return {};
}

Status read_entries(ByteReader& offsets, ByteReader& data, uint64_t count, const BytecodeFile& file,
                    std::vector<BytecodeEntry>& out) {
  out.reserve(count);
  while (out.size() < count) {
    const uint64_t dialect = offsets.varint();
    const uint64_t group = offsets.varint();
    if (offsets.failed() || dialect >= file.dialects.size() || group == 0 || group > count - out.size())
      return bytecode_error(offsets.position(), "the table of attributes and types is damaged");
    for (uint64_t i = 0; i < group; ++i) {
      BytecodeEntry entry;
      entry.dialect = static_cast<uint32_t>(dialect);
      const uint64_t size = offsets.flagged_varint(&entry.custom);
      entry.offset = data.position();
      entry.data = data.take(size);
      if (offsets.failed() || data.failed())
        return bytecode_error(offsets.position(), "an attribute or type lies outside of its section");
      out.push_back(entry);
    }
  }
  return {};
}

Status read_properties(const BytecodeSection& section, BytecodeFile& file) {
  ByteReader reader(section.payload, section.offset);
  const uint64_t n = reader.count();
  for (uint64_t i = 0; i < n; ++i) file.properties.push_back(reader.take(reader.varint()));
  if (reader.failed()) return bytecode_error(reader.position(), "the table of properties is damaged");
  return {};
}

}  // namespace

bool is_bytecode(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

Status bytecode_error(uint64_t offset, const std::string& message) {
  return invalid_argument("artifact, byte " + std::to_string(offset) + ": " + message);
}

bool read_section(ByteReader& reader, BytecodeSection* section) {
  const uint8_t head = reader.byte();
  section->id = head & 0x7F;
  const uint64_t size = reader.varint();
  if (head & 0x80) reader.align(reader.varint());
  section->offset = reader.position();
  section->payload = reader.take(size);
  return !reader.failed();
}

Expected<BytecodeFile> open_bytecode(std::string_view bytes) {
  if (!is_bytecode(bytes)) return bytecode_error(0, "this is no MLIR bytecode");
  ByteReader reader(bytes);
  reader.take(kMagic.size());
  BytecodeFile file;
  const uint64_t version = reader.varint();
  file.producer = reader.c_string();
  if (reader.failed()) return bytecode_error(reader.position(), "the file ends in its head");
  if (version > kNewestVersion)
    return unimplemented("artifact: bytecode version " + std::to_string(version) + " is newer than " +
                         std::to_string(kNewestVersion) + ", the newest that is known");
  file.version = static_cast<uint32_t>(version);

  std::array<BytecodeSection, kSectionCount> sections{};
  std::array<bool, kSectionCount> present{};
  while (!reader.done()) {
    const uint64_t at = reader.position();
    BytecodeSection section;
    if (!read_section(reader, &section)) return bytecode_error(at, "a section is cut short");
    if (section.id >= kSectionCount) return bytecode_error(at, "unknown section " + std::to_string(section.id));
    if (present[section.id]) return bytecode_error(at, "section " + std::to_string(section.id) + " stands twice");
    present[section.id] = true;
    sections[section.id] = section;
  }
  for (uint8_t id : {kString, kDialect, kAttrType, kAttrTypeOffset, kIr})
    if (!present[id]) return bytecode_error(bytes.size(), "section " + std::to_string(id) + " is missing");

  COLLET_TRY(read_strings(sections[kString], file));
  COLLET_TRY(read_dialects(sections[kDialect], file));
  if (present[kProperties]) COLLET_TRY(read_properties(sections[kProperties], file));

  ByteReader offsets(sections[kAttrTypeOffset].payload, sections[kAttrTypeOffset].offset);
  ByteReader data(sections[kAttrType].payload, sections[kAttrType].offset);
  const uint64_t attr_count = offsets.count(), type_count = offsets.count();
  COLLET_TRY(read_entries(offsets, data, attr_count, file, file.attrs));
  COLLET_TRY(read_entries(offsets, data, type_count, file, file.types));
  file.ir = sections[kIr].payload;
  file.ir_offset = sections[kIr].offset;
  return file;
}

}  // namespace collet::hlo::mlir
