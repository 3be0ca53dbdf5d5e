// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/abi_version.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/cross_host.h"
#include "sdk/pjrt/ffi.h"
#include "sdk/pjrt/host_functions.h"
#include "sdk/pjrt/layouts.h"
#include "sdk/pjrt/memory_descriptions.h"
#include "sdk/pjrt/profiler.h"
#include "sdk/pjrt/shardings.h"

/// \file
/// Defines the exported symbol, and the attributes of the plugin.

namespace collet::pjrt {
namespace {

PJRT_NamedValue number(const char* name, const int64_t& value) {
  PJRT_NamedValue out{};
  out.struct_size = sizeof out;
  out.name = name;
  out.name_size = std::strlen(name);
  out.type = PJRT_NamedValue_kInt64;
  out.int64_value = value;
  out.value_size = 1;
  return out;
}

template <size_t n>
PJRT_NamedValue numbers(const char* name, const int64_t (&values)[n]) {
  PJRT_NamedValue out = number(name, 0);
  out.type = PJRT_NamedValue_kInt64List;
  out.int64_array_value = values;
  out.value_size = n;
  return out;
}

// The newest StableHLO version that this plugin requests; frontends downgrade newer programs to it.
constexpr int64_t kCurrentVersion[] = {1, 20, 0};
constexpr int64_t kMinimumVersion[] = {0, 9, 0};

// After the last known function there are zeros, because newer callers read some slots without checking the size.
struct Table {
  PJRT_Api api;
  void* nothing[64];
};

void destroy_error(PJRT_Error_Destroy_Args* args) {
  (void)entry(args);
}
void error_message(PJRT_Error_Message_Args* args) {
  delete static_cast<Error*>(entry(args));
}

template <typename Args>
constexpr typename Signature<Args>::type entry_of() {
  return entry<Args>;
}
template <>
constexpr Signature<PJRT_Error_Destroy_Args>::type entry_of<PJRT_Error_Destroy_Args>() {
  return destroy_error;
}
template <>
constexpr Signature<PJRT_Error_Message_Args>::type entry_of<PJRT_Error_Message_Args>() {
  return error_message;
}

Table make_table() {
  Table table{};
  table.api.struct_size = sizeof(PJRT_Api);
  table.api.extension_start =
      layouts_extension(shardings_extension(ffi_extension(abi_version_extension(memory_descriptions_extension(
          host_functions_extension(profiler_extension(cross_host_transfers_extension(nullptr))))))));
  table.api.pjrt_api_version = {sizeof(PJRT_Api_Version), nullptr, PJRT_API_MAJOR, PJRT_API_MINOR};
#define PJRT_FUNCTION(name, last, least, size) table.api.PJRT_##name = entry_of<PJRT_##name##_Args>();
#include "sdk/pjrt/api/functions.def"
  return table;
}

}  // namespace

PJRT_Error* call(PJRT_Plugin_Initialize_Args&) {
  return nullptr;
}

PJRT_Error* call(PJRT_Plugin_Attributes_Args& args) {
  static const PJRT_NamedValue attributes[] = {
      number("xla_version", 2),
      numbers("stablehlo_current_version", kCurrentVersion),
      numbers("stablehlo_minimum_version", kMinimumVersion),
  };
  args.attributes = attributes;
  args.num_attributes = std::size(attributes);
  return nullptr;
}

}  // namespace collet::pjrt

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const collet::pjrt::Table table = collet::pjrt::make_table();
  return &table.api;
}
