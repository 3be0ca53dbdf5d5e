// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/session.h"

#include <algorithm>

#include <fmt/format.h>

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Shape;
using hlo::Type;

Expected<ModuleHandle> read(std::string_view bytes, const ProgramOptions& options) {
  collet_read_options read{};
  read.struct_size = sizeof read;
  read.file = options.file.empty() ? nullptr : options.file.c_str();
  read.elided = options.elided;
  read.seed = options.seed;
  read.floats_as_f64 = options.floats_as_f64 ? 1 : 0;
  collet_module* module = nullptr;
  collet_blob* messages = nullptr;
  collet_error error{};
  const collet_status code = collet_module_read(bytes.data(), bytes.size(), &read, &module, &messages, &error);
  const BlobHandle owned(messages);
  if (code == COLLET_OK) return ModuleHandle(module);
  if (owned)
    return Status(static_cast<Code>(code), std::string(collet_blob_data(owned.get()), collet_blob_size(owned.get())));
  return from_c(code, error, "read");
}

}  // namespace

Status check_arguments(std::span<const Literal> arguments, const std::vector<Shape>& expected) {
  if (arguments.size() != expected.size()) {
    return invalid_argument("the program has " + std::to_string(expected.size()) + " parameters; " +
                            std::to_string(arguments.size()) + " inputs were given");
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].shape().same_without_layout(expected[i])) continue;
    return invalid_argument("input " + std::to_string(i) + " is " + arguments[i].shape().to_string() +
                            "; the program wants " + expected[i].to_string());
  }
  return ok_status();
}

Shape shape_of(const collet_array_type& type) {
  if (type.element == COLLET_TYPE_TOKEN) return Shape::token();
  return Shape::array(static_cast<Type>(type.element), std::span(type.dims, type.rank));
}

Expected<BufferHandle> copy_to_device(collet_client* client, const Literal& value, uint32_t device,
                                      const std::string& what) {
  collet_host_array array{};
  array.struct_size = sizeof array;
  array.element = static_cast<uint32_t>(value.type());
  array.dims = value.shape().dims().data();
  array.rank = static_cast<uint32_t>(value.shape().rank());
  array.data = value.bytes();
  array.semantics = COLLET_HOST_COPIED;
  collet_buffer* buffer = nullptr;
  collet_error error{};
  const collet_status code = collet_buffer_from_host(client, device, COLLET_NONE, &array, &buffer, &error);
  if (code != COLLET_OK) return from_c(code, error, what);
  return BufferHandle(buffer);
}

Expected<Literal> fetch(collet_buffer* buffer) {
  Literal value = Literal::uninitialized(shape_of(collet_buffer_type(buffer)));
  collet_error error{};
  const collet_status code =
      collet_buffer_to_host(buffer, value.mutable_bytes(), static_cast<uint64_t>(value.byte_size()), nullptr, &error);
  if (code != COLLET_OK) return from_c(code, error, "result");
  return value;
}

Expected<collet_executable_facts> Program::facts() const {
  collet_executable_facts facts{};
  facts.struct_size = sizeof facts;
  collet_error error{};
  const collet_status code = collet_executable_facts_get(executable_.get(), &facts, &error);
  if (code != COLLET_OK) return from_c(code, error, "facts");
  return facts;
}

Expected<std::string> Program::explain(bool json) const {
  collet_blob* text = nullptr;
  collet_error error{};
  const collet_status code = collet_executable_explain(executable_.get(), json ? 1 : 0, &text, &error);
  if (code != COLLET_OK) return from_c(code, error, "explain");
  const BlobHandle owned(text);
  return std::string(collet_blob_data(text), collet_blob_size(text));
}

Uses Program::uses() const {
  Uses out;
  for (uint32_t i = 0;; ++i) {
    collet_question one{};
    one.struct_size = sizeof one;
    collet_error error{};
    if (collet_executable_question(executable_.get(), i, &one, &error) != COLLET_OK) return out;
    // A pattern that is in no program has no type.
    const bool not_offered = one.asked == 0 && one.element != COLLET_TYPE_INVALID;
    out.note({one.kind, one.name, one.element}, {one.asked != 0, one.accepted != 0, one.placed > 0, not_offered});
  }
}

Expected<std::vector<BufferHandle>> Program::upload(std::span<const Literal> arguments) const {
  COLLET_TRY(check_arguments(arguments, arguments_));
  std::vector<BufferHandle> buffers;
  for (size_t n = 0; n < arguments.size() * participants_; ++n) {
    const size_t number = n % arguments.size();
    COLLET_ASSIGN(BufferHandle buffer,
                  copy_to_device(client_, arguments[number], static_cast<uint32_t>(n / arguments.size()),
                                 "input " + std::to_string(number)));
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

Expected<std::vector<BufferHandle>> Program::execute(std::span<const BufferHandle> arguments) const {
  collet_execute_options options{};
  options.struct_size = sizeof options;
  options.keep_donated = 1;
  options.synchronous = 1;
  std::vector<collet_buffer*> in, out(results_.size() * participants_, nullptr);
  for (const BufferHandle& argument : arguments) in.push_back(argument.get());
  collet_error error{};
  const collet_status code = collet_execute(executable_.get(), &options, in.data(), out.data(), &error);
  if (code != COLLET_OK) return from_c(code, error, "execute");
  std::vector<BufferHandle> results;
  for (collet_buffer* buffer : out) results.emplace_back(buffer);
  return results;
}

Expected<std::vector<Literal>> Program::run(std::span<const Literal> arguments) const {
  COLLET_ASSIGN(const std::vector<BufferHandle> in, upload(arguments));
  COLLET_ASSIGN(const std::vector<BufferHandle> out, execute(in));
  std::vector<Literal> results;
  for (const BufferHandle& buffer : out) {
    COLLET_ASSIGN(Literal value, fetch(buffer.get()));
    results.push_back(std::move(value));
  }
  return results;
}

Expected<std::unique_ptr<Session>> Session::open(const BackendChoice& choice) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : choice.options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  collet_client_options options{};
  options.struct_size = sizeof options;
  options.backend = choice.name.c_str();
  options.fallback = choice.no_fallback ? "none" : nullptr;
  options.keys = keys.data();
  options.values = values.data();
  options.pairs = static_cast<uint32_t>(keys.size());
  options.device_count = choice.devices;
  options.target = choice.target.empty() ? nullptr : choice.target.c_str();
  collet_client* client = nullptr;
  collet_error error{};
  const collet_status code = collet_client_open(&options, &client, &error);
  if (code != COLLET_OK) return from_c(code, error, "backend " + choice.name);
  auto session = std::make_unique<Session>();
  session->client_.reset(client);
  if (choice.processes) {
    const collet_status joined = collet_client_join(client, choice.processes, &error);
    if (joined != COLLET_OK) return from_c(joined, error, "join");
  }
  return session;
}

Expected<collet_client_info> Session::info() const {
  collet_client_info info{};
  info.struct_size = sizeof info;
  collet_error error{};
  const collet_status code = collet_client_info_get(client_.get(), &info, &error);
  if (code != COLLET_OK) return from_c(code, error, "client info");
  return info;
}

Expected<std::string> Session::machine() const {
  collet_client_device_info info{};
  info.struct_size = sizeof info;
  collet_error error{};
  const collet_status code = collet_client_device_info_get(client_.get(), 0, &info, &error);
  if (code != COLLET_OK) return from_c(code, error, "device info");
  std::string text =
      fmt::format("kind: {}\nfingerprint: {}\ntraits: {:#x}\nspaces:", info.kind, info.fingerprint, info.traits);
  for (uint32_t space = 0; space < info.space_count; ++space)
    text += fmt::format(" {}", collet_client_space_kind(client_.get(), 0, space));
  text += "\ntypes:";
  for (uint32_t type = 0; type < COLLET_TYPE_LIMIT; ++type)
    if (const uint32_t flags = collet_client_type_flags(client_.get(), 0, type); flags != 0)
      text += fmt::format(" {}={:#x}", hlo::type_info(static_cast<Type>(type)).text, flags);
  return text + "\n";
}

bool Session::declares(uint32_t element) const {
  return collet_client_type_flags(client_.get(), 0, element) != 0;
}

uint32_t Session::traits() const {
  collet_client_device_info info{};
  info.struct_size = sizeof info;
  return collet_client_device_info_get(client_.get(), 0, &info, nullptr) == COLLET_OK ? info.traits : 0;
}

Expected<Program> Session::compile(std::string_view bytes, const ProgramOptions& options) const {
  COLLET_ASSIGN(const ModuleHandle module, read(bytes, options));
  collet_compile_request request{};
  request.struct_size = sizeof request;
  request.no_cache = options.no_cache ? 1 : 0;
  request.ignore_costs = options.ignore_costs ? 1 : 0;
  request.own_results = options.own_results ? 1 : 0;
  request.replica_count = request.partition_count = options.one_participant ? 1 : 0;
  request.dump_to = options.dump_to.empty() ? nullptr : options.dump_to.c_str();
  request.dump_only = options.dump_only.empty() ? nullptr : options.dump_only.c_str();
  collet_executable* executable = nullptr;
  collet_error error{};
  const collet_status code = collet_compile(client_.get(), module.get(), &request, &executable, &error);
  if (code != COLLET_OK) return from_c(code, error, "compile");
  Program program;
  program.client_ = client_.get();
  program.executable_.reset(executable);
  COLLET_ASSIGN(const collet_executable_facts facts, program.facts());
  program.participants_ = std::max(facts.local_participants, 1u);
  for (uint32_t i = 0; i < facts.argument_count; ++i) {
    program.arguments_.push_back(shape_of(collet_executable_argument(executable, i)));
  }
  for (uint32_t i = 0; i < facts.result_count; ++i) {
    program.results_.push_back(shape_of(collet_executable_result(executable, i)));
  }
  return program;
}

Status Session::can_read(std::string_view bytes, const ProgramOptions& options) {
  return read(bytes, options).status();
}

std::string Session::unpacked(std::string bytes) const {
  collet_executable* loaded = nullptr;
  if (collet_executable_load(client_.get(), bytes.data(), bytes.size(), nullptr, &loaded, nullptr) != COLLET_OK)
    return bytes;
  const ExecutableHandle executable(loaded);
  collet_blob* program = nullptr;
  if (collet_executable_program(loaded, COLLET_FORMAT_HLO_TEXT, &program, nullptr) != COLLET_OK) return bytes;
  const BlobHandle owned(program);
  return std::string(collet_blob_data(program), collet_blob_size(program));
}

}  // namespace collet::conformance
