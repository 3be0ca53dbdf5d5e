// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/executable.h"

#include <algorithm>
#include <utility>

#include "hlo/base/sha256.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

constexpr std::string_view kMagic = "collet executable 3\n";

uint64_t dense_bytes(const collet_array_type& type) {
  uint64_t bytes = collet_type_bytes(type.element);
  for (uint32_t d = 0; d < type.rank; ++d) bytes *= static_cast<uint64_t>(type.dims[d]);
  return bytes;
}

// Returns the SHA-256 that stands between the magic and the fields: of both.
std::string digest_of(std::string_view fields) {
  const Sha256::Digest digest = Sha256().add(kMagic).add(fields).digest();
  return {digest.begin(), digest.end()};
}

// Returns the program in the format c.format: as it was passed, or as libcollet writes it.
PJRT_Error* code_of(const Compiled& c, std::string& out) {
  out = c.code;
  if (!out.empty()) return nullptr;
  collet_blob* program = nullptr;
  COLLET_PJRT_TRY(collet_executable_program(c.handle, COLLET_FORMAT_HLO_PROTO, &program, &failure));
  out.assign(collet_blob_data(program), collet_blob_size(program));
  collet_blob_release(program);
  return nullptr;
}

// Returns the field of the compiled code. Code that returns the real sizes of its results has more results than the program, so that
// clients without this setting compile the program again.
uint32_t compiled_field(const PJRT_Client& client) {
  return client.settings.real_sizes ? 7 : 6;
}

// Serializes the program and, if libcollet provides it, the compiled code.
PJRT_Error* serialize(const Compiled& c, std::string& out) {
  if (!c.host_functions.empty())
    return failed_precondition("the program calls functions of this process and means nothing elsewhere");
  std::string fields, code;
  COLLET_PJRT_CHECK(code_of(c, code));
  put_bytes(fields, 1, c.format);
  put_bytes(fields, 2, c.raw_options);
  put_bytes(fields, 3, c.client->version);
  put_bytes(fields, 4, code);
  put_bytes(fields, 5, c.name);
  collet_blob* compiled = nullptr;
  if (collet_executable_serialize(c.handle, &compiled, nullptr) == COLLET_OK)
    put_bytes(fields, compiled_field(*c.client), {collet_blob_data(compiled), collet_blob_size(compiled)});
  collet_blob_release(compiled);
  out = kMagic;
  out += digest_of(fields);
  out += fields;
  return nullptr;
}

}  // namespace
}  // namespace collet::pjrt

struct PJRT_SerializedExecutable {
  std::string bytes;
};
struct PJRT_SerializedCompileOptions {};
struct PJRT_DeviceAssignmentSerialized {};

namespace collet::pjrt {

PJRT_Error* call(PJRT_Executable_Destroy_Args& args) {
  delete args.executable;
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_Name_Args& args) {
  return lend(args.executable->program->name, args.executable_name, args.executable_name_size);
}

PJRT_Error* call(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas = args.executable->program->options.replicas;
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions = args.executable->program->options.partitions;
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = args.executable->program->output_types.size();
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  const uint64_t bytes = args.executable->program->code_bytes;
  args.size_in_bytes = bytes ? static_cast<int64_t>(bytes) : -1;
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_GetCostAnalysis_Args& args) {
  return lend(args.executable->program->costs, args.properties, args.num_properties);
}

PJRT_Error* call(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const Compiled& c = *args.executable->program;
  args.num_outputs = c.output_kinds.size();
  args.memory_kinds = c.output_kinds.data();
  args.memory_kind_sizes = c.output_kind_sizes.data();
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_ParameterMemoryKinds_Args& args) {
  const Compiled& c = *args.executable->program;
  args.num_parameters = c.parameter_kinds.size();
  args.memory_kinds = c.parameter_kinds.data();
  args.memory_kind_sizes = c.parameter_kind_sizes.data();
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_OutputElementTypes_Args& args) {
  Compiled& c = *args.executable->program;
  args.output_types = c.output_types.data();
  args.num_output_types = c.output_types.size();
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_OutputDimensions_Args& args) {
  const Compiled& c = *args.executable->program;
  args.num_outputs = c.output_ranks.size();
  args.dims = c.output_dims.data();
  args.dim_sizes = c.output_ranks.data();
  return nullptr;
}

// Clients accept HLO only as HloModuleProtoWithConfig, whose config must have at least the layout of the entry. The
// module has that layout as its host_program_shape.
static std::string with_config(std::string_view module) {
  std::string config, out;
  WireReader reader(module);
  while (reader.next())
    if (reader.field() == 4) put_bytes(config, 1, reader.bytes());
  put_bytes(out, 1, module);
  put_bytes(out, 2, config);
  return out;
}

// Writes the program as it runs, if it differs from the one that was passed: the program of each partition, if whole
// arrays were partitioned; HLO with its configuration; and HLO instead of MLIR with ops of Shardy, which clients cannot
// translate.
static void write_optimized(Compiled& c) {
  bool is_hlo = c.format == "hlo";
  if (c.code.empty() || c.names_shardy || (c.options.partition && c.options.partitions > 1)) {
    collet_blob* program = nullptr;
    if (collet_executable_program(c.handle, COLLET_FORMAT_HLO_PROTO, &program, nullptr) == COLLET_OK) {
      c.optimized.assign(collet_blob_data(program), collet_blob_size(program));
      is_hlo = true;
    }
    collet_blob_release(program);
  }
  if (is_hlo) c.optimized = with_config(c.optimized.empty() ? c.code : c.optimized);
}

PJRT_Error* call(PJRT_Executable_OptimizedProgram_Args& args) {
  Compiled& c = *args.executable->program;
  if (!args.program) return invalid_argument("no program to fill");
  std::call_once(c.asked_optimized, [&] { write_optimized(c); });
  const std::string_view format = c.optimized.empty() ? std::string_view(c.format) : "hlo_with_config";
  const std::string& code = c.optimized.empty() ? c.code : c.optimized;
  PJRT_Program& out = *args.program;
  out.format = format.data();
  out.format_size = format.size();
  if (out.code) {
    if (out.code_size < code.size()) return invalid_argument("no room for the program");
    std::memcpy(out.code, code.data(), code.size());
  }
  out.code_size = code.size();
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_Serialize_Args& args) {
  std::string bytes;
  COLLET_PJRT_CHECK(serialize(*args.executable->program, bytes));
  auto* out = new PJRT_SerializedExecutable{std::move(bytes)};
  args.serialized_bytes = out->bytes.data();
  args.serialized_bytes_size = out->bytes.size();
  args.serialized_executable = out;
  args.serialized_executable_deleter = [](PJRT_SerializedExecutable* e) { delete e; };
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_DeserializeAndLoad_Args& args) {
  std::string_view bytes(args.serialized_executable, args.serialized_executable_size);
  if (!bytes.starts_with(kMagic)) return invalid_argument("these bytes are no executable of this plugin");
  bytes.remove_prefix(kMagic.size());
  const std::string_view digest = bytes.substr(0, sizeof(Sha256::Digest));
  bytes.remove_prefix(digest.size());
  if (digest != digest_of(bytes)) return invalid_argument("the executable is damaged: its SHA-256 is another one");
  WireReader reader(bytes);
  Source source;
  std::string_view version;
  while (reader.next()) {
    if (reader.field() == 1) source.format = reader.bytes();
    if (reader.field() == 2) source.options = reader.bytes();
    if (reader.field() == 3) version = reader.bytes();
    if (reader.field() == 4) source.code = reader.bytes();
    if (reader.field() == 5) source.name = reader.bytes();
    if (reader.field() == compiled_field(*args.client)) source.compiled = reader.bytes();
  }
  if (!reader.ok()) return invalid_argument("the executable is damaged");
  if (version != args.client->version)
    return failed_precondition("the executable was made by " + std::string(version) + "; this is " +
                               args.client->version);
  if (args.overridden_serialized_compile_options_size)
    source.options = {args.overridden_serialized_compile_options, args.overridden_serialized_compile_options_size};
  std::shared_ptr<Compiled> compiled;
  COLLET_PJRT_CHECK(compile(*args.client, source, compiled));
  args.loaded_executable = new PJRT_LoadedExecutable{std::move(compiled)};
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_Fingerprint_Args& args) {
  return lend(args.executable->program->fingerprint, args.executable_fingerprint, args.executable_fingerprint_size);
}

PJRT_Error* call(PJRT_Executable_GetCompileOptions_Args& args) {
  args.serialized_bytes = args.executable->program->raw_options.data();
  args.serialized_bytes_size = args.executable->program->raw_options.size();
  args.serialized_compile_options = nullptr;
  args.serialized_compile_options_deleter = [](PJRT_SerializedCompileOptions*) {};
  return nullptr;
}

PJRT_Error* call(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const Compiled& c = *args.executable->program;
  collet_executable_facts facts{};
  facts.struct_size = sizeof facts;
  COLLET_PJRT_TRY(collet_executable_facts_get(c.handle, &facts, &failure));
  uint64_t in = 0, out = 0, shared = 0;
  for (uint32_t i = 0; i < facts.argument_count; ++i) {
    const uint64_t bytes = dense_bytes(collet_executable_argument(c.handle, i));
    in += bytes;
    if (collet_executable_donates(c.handle, i)) shared += bytes;
  }
  for (uint32_t i = 0; i < facts.result_count; ++i) out += dense_bytes(collet_executable_result(c.handle, i));
  PJRT_Executable_GetCompiledMemoryStats_Args zero{};
  zero.struct_size = args.struct_size;
  zero.extension_start = args.extension_start;
  zero.executable = args.executable;
  args = zero;
  args.generated_code_size_in_bytes = static_cast<int64_t>(c.code_bytes);
  args.argument_size_in_bytes = static_cast<int64_t>(in);
  args.output_size_in_bytes = static_cast<int64_t>(out);
  args.alias_size_in_bytes = static_cast<int64_t>(std::min(shared, out));
  args.temp_size_in_bytes = static_cast<int64_t>(facts.workspace_bytes + facts.resident_bytes);
  args.peak_memory_in_bytes =
      args.argument_size_in_bytes + args.output_size_in_bytes - args.alias_size_in_bytes + args.temp_size_in_bytes;
  args.total_size_in_bytes = args.peak_memory_in_bytes;
  return nullptr;
}

PJRT_Error* call(PJRT_LoadedExecutable_Destroy_Args& args) {
  delete args.executable;
  return nullptr;
}

PJRT_Error* call(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable = new PJRT_Executable{args.loaded_executable->program};
  return nullptr;
}

PJRT_Error* call(PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  return lend(args.executable->program->devices, args.addressable_devices, args.num_addressable_devices);
}

PJRT_Error* call(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& args) {
  Compiled& c = *args.executable->program;
  args.addressable_device_logical_ids = reinterpret_cast<PJRT_LogicalDeviceIds*>(c.logical_ids.data());
  args.num_addressable_device_logical_ids = c.logical_ids.size() / 2;
  return nullptr;
}

PJRT_Error* call(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  args.serialized_bytes = args.executable->program->assignment.data();
  args.serialized_bytes_size = args.executable->program->assignment.size();
  args.serialized_device_assignment = nullptr;
  args.serialized_device_assignment_deleter = [](PJRT_DeviceAssignmentSerialized*) {};
  return nullptr;
}

PJRT_Error* call(PJRT_LoadedExecutable_Delete_Args& args) {
  args.executable->deleted = true;
  return nullptr;
}

PJRT_Error* call(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  args.is_deleted = args.executable->deleted;
  return nullptr;
}

PJRT_Error* call(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  return lend(args.executable->program->fingerprint, args.executable_fingerprint, args.executable_fingerprint_size);
}

}  // namespace collet::pjrt
