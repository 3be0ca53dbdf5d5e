// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/exports.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

namespace collet::conformance {
namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

/// Reads structs at places in a file's bytes; none beyond their end.
class Bytes {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
  template <typename T>
  std::optional<T> at(uint64_t offset) const {
    T out;
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof out) return std::nullopt;
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const std::string_view rest = std::string_view(bytes_).substr(offset);
    const size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
  }

 private:
  std::string bytes_;
};

bool is_native(const Header& header) {
  constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  const uint16_t one = 1;
  unsigned char low;
  std::memcpy(&low, &one, 1);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == kClass &&
         header.e_ident[EI_DATA] == (low ? ELFDATA2LSB : ELFDATA2MSB) && header.e_shentsize == sizeof(Section);
}

bool is_export(const Symbol& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info), type = ELF64_ST_TYPE(symbol.st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  const bool global = binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE;
  const bool value = type == STT_FUNC || type == STT_OBJECT || type == STT_TLS || type == STT_GNU_IFUNC;
  return global && value && symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

// Symbols that the linker or the C library's start files define in every library.
bool is_of_every_library(std::string_view name) {
  static constexpr std::string_view kNames[] = {"_init", "_fini", "_edata", "_end", "__bss_start"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::vector<std::string> more_exports(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const Bytes bytes(std::string(std::istreambuf_iterator<char>(file), {}));
  std::vector<std::string> out;
  const auto header = bytes.at<Header>(0);
  if (!header || !is_native(*header)) return out;
  for (uint64_t s = 0; s < header->e_shnum; ++s) {
    const auto table = bytes.at<Section>(header->e_shoff + s * sizeof(Section));
    if (!table || table->sh_type != SHT_DYNSYM) continue;
    const auto names = bytes.at<Section>(header->e_shoff + uint64_t{table->sh_link} * sizeof(Section));
    if (!names) continue;
    for (uint64_t i = 0; i < table->sh_size / sizeof(Symbol); ++i) {
      const auto symbol = bytes.at<Symbol>(table->sh_offset + i * sizeof(Symbol));
      if (!symbol) break;
      if (!is_export(*symbol)) continue;
      const std::string_view name = bytes.text(names->sh_offset + symbol->st_name);
      if (!name.empty() && name != "collet_backend_entry" && !is_of_every_library(name)) out.emplace_back(name);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace collet::conformance
