// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "hlo/base/sha256.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/element_types.h"
#include "sdk/pjrt/executable.h"
#include "sdk/pjrt/host_functions.h"
#include "sdk/pjrt/layouts.h"
#include "sdk/pjrt/shardings.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

PJRT_Error* format_of(std::string_view name, std::string_view code, uint32_t& out) {
  if (name == "mlir") {
    out = code.starts_with("ML\xEFR") ? COLLET_FORMAT_STABLEHLO : COLLET_FORMAT_STABLEHLO_TEXT;
  } else if (name == "hlo" || name == "hlo_with_config") {
    out = COLLET_FORMAT_HLO_PROTO;
  } else {
    return invalid_argument("programs are read as mlir, hlo or hlo_with_config, not as '" + std::string(name) + "'");
  }
  return nullptr;
}

// Returns the HloModuleProto in a HloModuleProtoWithConfig, whose fields are {1: HloModuleProto, 2: config}.
std::string_view without_config(std::string_view format, std::string_view code) {
  if (format != "hlo_with_config") return code;
  WireReader reader(code);
  while (reader.next())
    if (reader.field() == 1) return reader.bytes();
  return code;
}

struct Module {
  collet_module* handle = nullptr;
  ~Module() { collet_module_release(handle); }
};

struct Blob {
  collet_blob* handle = nullptr;
  ~Blob() { collet_blob_release(handle); }
};

PJRT_Error* read(std::string_view format, std::string_view code, bool append_sizes, Module& out) {
  collet_read_options options{};
  options.struct_size = sizeof options;
  options.append_sizes = append_sizes;
  COLLET_PJRT_CHECK(format_of(format, code, options.format));
  code = without_config(format, code);
  Blob messages;
  collet_error failure{};
  const collet_status status =
      collet_module_read(code.data(), code.size(), &options, &out.handle, &messages.handle, &failure);
  if (status == COLLET_OK) return nullptr;
  // `failure` has the first message, possibly truncated; the list of all messages has it in full.
  std::string text = failure.message;
  if (messages.handle && collet_blob_size(messages.handle) > text.size()) text = collet_blob_data(messages.handle);
  return from_collet(status, text.c_str());
}

// Returns the dimensions of results whose sizes the data decide, in the order in which the program returns the sizes.
std::vector<DynamicDimension> dynamic_dimensions(const collet_module* module) {
  std::vector<DynamicDimension> out;
  for (uint32_t i = 0; i < collet_module_result_count(module); ++i)
    for (uint32_t d = 0; d < collet_module_result(module, i).rank; ++d)
      if (collet_module_result_is_dynamic(module, i, d)) out.push_back({i, d});
  return out;
}

// Returns the SHA-256 of everything on which the result depends. JAX takes equal fingerprints for equal programs.
std::string fingerprint_of(const Compiled& c, std::string_view code) {
  Sha256 hash;
  for (const std::string_view text : {code, std::string_view(c.raw_options), std::string_view(c.client->version)})
    hash.add(std::to_string(text.size()) + ' ').add(text);
  return hash.finish();
}

PJRT_Error* assign(PJRT_Client& client, CompileOptions& options) {
  const uint32_t participants = options.replicas * options.partitions;
  if (participants > client.devices.size())
    return invalid_argument(std::to_string(options.replicas) + " replicas of " + std::to_string(options.partitions) +
                            " partitions on " + std::to_string(client.devices.size()) + " devices");
  if (options.assignment.empty()) {
    const auto& devices = participants <= client.own_devices.size() ? client.own_devices : client.devices;
    for (uint32_t i = 0; i < participants; ++i)
      options.assignment.push_back(static_cast<uint32_t>(devices[i]->description.id));
  }
  std::vector<bool> taken(client.devices.size());
  for (const uint32_t device : options.assignment) {
    if (device >= client.devices.size())
      return invalid_argument("the program is assigned to device " + std::to_string(device) + "; there are " +
                              std::to_string(client.devices.size()));
    if (taken[device]) return invalid_argument("two participants are assigned to device " + std::to_string(device));
    taken[device] = true;
  }
  return nullptr;
}

// Returns the assignment with which libcollet compiles. A process without a participant does not run the program, but
// compiles it to know its arguments and results, as if its first device took part.
std::vector<uint32_t> assignment_here(const PJRT_Client& client, const CompileOptions& options) {
  std::vector<uint32_t> out = options.assignment;
  if (std::none_of(out.begin(), out.end(), [&](uint32_t d) { return client.devices[d]->is_own; }))
    out[0] = static_cast<uint32_t>(client.own_devices[0]->description.id);
  return out;
}

PJRT_NamedValue cost(const char* name, double value) {
  PJRT_NamedValue out{};
  out.struct_size = sizeof out;
  out.name = name;
  out.name_size = std::strlen(name);
  out.type = PJRT_NamedValue_kFloat;
  out.float_value = static_cast<float>(value);
  out.value_size = 1;
  return out;
}

// Stores how arguments and results are sharded, if the program was partitioned.
void describe_shardings(Compiled& c, uint32_t results) {
  for (uint32_t i = 0; i < c.arguments + results; ++i) {
    const bool result = i >= c.arguments;
    const char* text = result ? collet_executable_result_sharding(c.handle, i - c.arguments)
                              : collet_executable_argument_sharding(c.handle, i);
    if (!text) return c.shardings.clear();
    c.shardings.push_back(write_op_sharding(text));
  }
  for (uint32_t i = 0; i < c.shardings.size(); ++i) {
    const bool result = i >= c.arguments;
    (result ? c.output_shardings : c.parameter_shardings).push_back(c.shardings[i].data());
    (result ? c.output_sharding_sizes : c.parameter_sharding_sizes).push_back(c.shardings[i].size());
  }
}

// Keeps the host functions alive that the program calls.
void keep_called(Compiled& c, const HostFunctions& functions) {
  for (uint32_t i = 0; const char* target = collet_executable_host_function(c.handle, i); ++i)
    for (size_t k = 0; k < functions.targets.size(); ++k)
      if (functions.targets[k] == target) c.host_functions.push_back(functions.uses[k]);
}

PJRT_Error* describe(Compiled& c, std::string_view code) {
  collet_executable_facts facts{};
  facts.struct_size = sizeof facts;
  COLLET_PJRT_TRY(collet_executable_facts_get(c.handle, &facts, &failure));
  c.arguments = facts.argument_count;
  const uint32_t results = facts.result_count - static_cast<uint32_t>(c.sizes.size());
  describe_shardings(c, results);
  for (uint32_t i = 0; i < c.options.assignment.size(); ++i) {
    PJRT_Device* const device = c.client->devices[c.options.assignment[i]];
    if (!device->is_own) continue;
    c.devices.push_back(device);
    c.logical_ids.push_back(static_cast<int>(i / c.options.partitions));
    c.logical_ids.push_back(static_cast<int>(i % c.options.partitions));
  }
  const PJRT_Device& one = c.devices.empty() ? *c.client->own_devices[0] : *c.devices[0];
  const std::string& kind = one.default_memory->kind;
  for (uint32_t i = 0; i < results; ++i) {
    const uint32_t space = collet_executable_result_space(c.handle, i);
    if (space >= one.owned.size()) return make_error(PJRT_Error_Code_INTERNAL, "a result in no memory of its device");
    for (PJRT_Device* d : c.devices) {
      if (space >= d->owned.size()) return make_error(PJRT_Error_Code_INTERNAL, "a result in no memory of its device");
      c.output_memories.push_back(d->owned[space].get());
    }
    c.output_kinds.push_back(one.owned[space]->kind.c_str());
    c.output_kind_sizes.push_back(one.owned[space]->kind.size());
    const collet_array_type type = collet_executable_result(c.handle, i);
    c.output_types.push_back(from_collet(type.element));
    c.output_dims.insert(c.output_dims.end(), type.dims, type.dims + type.rank);
    c.output_ranks.push_back(type.rank);
    c.output_layouts.push_back(layout_of(collet_executable_result_layout(c.handle, i), type.rank));
  }
  for (uint32_t i = 0; i < facts.argument_count; ++i) {
    const collet_array_type type = collet_executable_argument(c.handle, i);
    c.parameter_layouts.push_back(layout_of(collet_executable_argument_layout(c.handle, i), type.rank));
    if (type.element == COLLET_TYPE_TOKEN) c.token_arguments.push_back(i);
  }
  c.parameter_kinds.assign(facts.argument_count, kind.c_str());
  c.parameter_kind_sizes.assign(facts.argument_count, kind.size());
  c.assignment = write_assignment(c.options);
  c.code_bytes = facts.code_bytes;
  c.costs.push_back(cost("flops", static_cast<double>(facts.flops)));
  if (facts.traffic_bytes) c.costs.push_back(cost("bytes accessed", static_cast<double>(facts.traffic_bytes)));
  if (facts.estimated_ns > 0) c.costs.push_back(cost("optimal_seconds", facts.estimated_ns * 1e-9));
  c.fingerprint = fingerprint_of(c, code);
  return nullptr;
}

// Keeps the program as it was passed. A long one, which has large constants, is written again when it is asked for: by libcollet,
// as HLO. That gives what runs, so it is not the same if whole arrays were partitioned, or sizes are returned as well.
void keep_code(Compiled& c, const Source& source) {
  constexpr size_t kLong = size_t{1} << 20, kMostOfHlo = size_t{1} << 30;
  const bool partitioned = c.options.partition && c.options.partitions > 1;
  if (partitioned || !c.sizes.empty() || source.code.size() < kLong || source.code.size() > kMostOfHlo) {
    c.code = source.code;
    c.format = source.format;
    c.names_shardy = !c.format.starts_with("hlo") && c.code.find("sdy") != std::string::npos;
  } else {
    c.format = "hlo";
  }
}

}  // namespace

PJRT_Error* compile(PJRT_Client& client, const Source& source, std::shared_ptr<Compiled>& out) {
  auto c = std::make_shared<Compiled>();
  c->client = &client;
  c->raw_options = source.options;
  COLLET_PJRT_CHECK(read_compile_options(source.options, c->options));
  COLLET_PJRT_CHECK(assign(client, c->options));
  collet_compile_request request{};
  request.struct_size = sizeof request;
  request.replica_count = c->options.replicas;
  request.partition_count = c->options.partitions;
  const std::vector<uint32_t> assignment = assignment_here(client, c->options);
  request.assignment_count = static_cast<uint32_t>(assignment.size());
  request.assignment = assignment.data();
  request.partition = c->options.partition;
  const HostFunctions functions = host_functions();
  request.host_functions = functions.list.data();
  request.host_function_count = static_cast<uint32_t>(functions.list.size());
  Module module;
  const bool real_sizes = client.settings.real_sizes;
  if (real_sizes) {
    COLLET_PJRT_CHECK(read(source.format, source.code, true, module));
    c->sizes = dynamic_dimensions(module.handle);
  }
  const bool loaded =
      !source.compiled.empty() && collet_executable_load(client.handle, source.compiled.data(), source.compiled.size(),
                                                         &request, &c->handle, nullptr) == COLLET_OK;
  if (loaded) {
    c->name = source.name;
  } else {
    if (!real_sizes) COLLET_PJRT_CHECK(read(source.format, source.code, false, module));
    COLLET_PJRT_TRY(collet_compile(client.handle, module.handle, &request, &c->handle, &failure));
    c->name = collet_module_name(module.handle);
  }
  keep_called(*c, functions);
  COLLET_PJRT_CHECK(describe(*c, source.code));
  keep_code(*c, source);
  out = std::move(c);
  return nullptr;
}

template <typename Args>
static Source source_of(const PJRT_Program& program, const Args& args) {
  return {{program.format, program.format_size},
          {program.code, program.code_size},
          {args.compile_options, args.compile_options_size}};
}

PJRT_Error* call(PJRT_Client_Compile_Args& args) {
  const PJRT_Program program = copy_of(*args.program);
  std::shared_ptr<Compiled> compiled;
  COLLET_PJRT_CHECK(compile(*args.client, source_of(program, args), compiled));
  args.executable = new PJRT_LoadedExecutable{std::move(compiled)};
  return nullptr;
}

PJRT_Error* call(PJRT_Compile_Args& args) {
  const std::shared_ptr<PJRT_Client> compiler = args.topology ? args.topology->compiler : nullptr;
  PJRT_Client* client = compiler ? compiler.get() : args.client;
  if (!client) return invalid_argument("a program is compiled for a client or for a topology that was made by name");
  const PJRT_Program program = copy_of(*args.program);
  std::shared_ptr<Compiled> compiled;
  COLLET_PJRT_CHECK(compile(*client, source_of(program, args), compiled));
  compiled->compiler = compiler;
  args.executable = new PJRT_Executable{std::move(compiled)};
  return nullptr;
}

PJRT_Error* call(PJRT_Client_Load_Args& args) {
  if (args.executable->program->client != args.client)
    return invalid_argument("the executable was compiled for another client");
  args.loaded_executable = new PJRT_LoadedExecutable{args.executable->program};
  return nullptr;
}

}  // namespace collet::pjrt
