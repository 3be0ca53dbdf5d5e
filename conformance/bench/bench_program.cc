// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/bench_program.h"

#include <chrono>
#include <cstring>

#include "conformance/runner/session.h"
#include "hlo/testing/inputs.h"

namespace collet::bench {
namespace {

uint64_t elements_of(const collet_array_type& type) {
  uint64_t elements = 1;
  for (uint32_t i = 0; i < type.rank; ++i) elements *= static_cast<uint64_t>(type.dims[i]);
  return elements;
}

bool same(const collet_array_type& a, const collet_array_type& b) {
  return a.element == b.element && a.rank == b.rank &&
         (a.rank == 0 || std::memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) == 0);
}

void release(std::vector<collet_buffer*>& buffers) {
  for (collet_buffer*& buffer : buffers) {
    collet_buffer_release(buffer);
    buffer = nullptr;
  }
}

}  // namespace

Expected<std::vector<hlo::Literal>> small_numbers(const std::vector<hlo::Shape>& parameters) {
  using Rule = hlo::testing::InputRule;
  std::vector<hlo::Literal> inputs;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const hlo::Type type = parameters[i].type();
    const Rule rule = type == hlo::Type::PRED ? Rule{.kind = Rule::Kind::Bit}
                      : hlo::is_integer(type) ? Rule{.kind = Rule::Kind::Integer, .modulo = 10}
                                              : Rule{.kind = Rule::Kind::Unit, .scale = 0.25};
    inputs.push_back(hlo::testing::input_by_rule(rule, parameters[i], i));
  }
  return inputs;
}

Expected<Client> open_client(const std::string& backend, bool no_fallback, const BackendOptions& options_of_it) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options_of_it) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  collet_client_options options{};
  options.struct_size = sizeof options;
  options.backend = backend.empty() ? nullptr : backend.c_str();
  options.fallback = no_fallback ? "none" : nullptr;
  options.keys = keys.data();
  options.values = values.data();
  options.pairs = static_cast<uint32_t>(keys.size());
  collet_client* client = nullptr;
  collet_error error{};
  if (const collet_status code = collet_client_open(&options, &client, &error)) return from_c(code, error, "open");
  return Client(client);
}

std::string backend_name(collet_client* client) {
  collet_client_info info{};
  info.struct_size = sizeof info;
  collet_error error{};
  return collet_client_info_get(client, &info, &error) == COLLET_OK ? info.backend : "?";
}

Expected<std::unique_ptr<BenchProgram>> BenchProgram::make(collet_client* client, const Entry& entry, bool fusion) {
  collet_module* module = nullptr;
  collet_blob* messages = nullptr;
  collet_error error{};
  collet_read_options read{};
  read.struct_size = sizeof read;
  read.file = entry.file.empty() ? nullptr : entry.file.c_str();
  read.elided = entry.elided;
  read.seed = entry.seed;
  if (const auto code =
          collet_module_read(entry.program.data(), entry.program.size(), &read, &module, &messages, &error)) {
    const conformance::BlobHandle owned(messages);
    if (!owned) return from_c(code, error, "read");
    return Status(static_cast<Code>(code), std::string(collet_blob_data(messages), collet_blob_size(messages)));
  }
  collet_compile_request request{};
  request.struct_size = sizeof request;
  request.no_fusion = fusion ? 0 : 1;
  std::unique_ptr<BenchProgram> made(new BenchProgram);
  const auto code = collet_compile(client, module, &request, &made->executable_, &error);
  collet_module_release(module);
  if (code) return from_c(code, error, "compile");
  COLLET_TRY(made->prepare(client, entry.inputs));
  return made;
}

Status BenchProgram::prepare(collet_client* client, const MakeInputs& inputs) {
  const collet_executable_facts known = facts();
  if (known.participants > 1) return unimplemented("a program of several participants");
  results_.resize(known.result_count);
  successor_.assign(known.argument_count, COLLET_NONE);
  std::vector<char> taken(known.result_count, 0);
  std::vector<hlo::Shape> parameters;
  for (uint32_t i = 0; i < known.argument_count; ++i)
    parameters.push_back(conformance::shape_of(collet_executable_argument(executable_, i)));
  COLLET_ASSIGN(const std::vector<hlo::Literal> data, inputs(parameters));
  COLLET_TRY(conformance::check_arguments(data, parameters));
  for (uint32_t i = 0; i < known.argument_count; ++i) {
    const collet_array_type type = collet_executable_argument(executable_, i);
    collet_host_array array{};
    array.struct_size = sizeof array;
    array.element = type.element;
    array.dims = type.dims;
    array.rank = type.rank;
    array.data = data[i].bytes();
    collet_buffer* buffer = nullptr;
    collet_error error{};
    const auto code = collet_buffer_from_host(client, 0, COLLET_NONE, &array, &buffer, &error);
    if (code) return from_c(code, error, "upload");
    arguments_.push_back(buffer);
    argument_bytes_ += static_cast<uint64_t>(data[i].byte_size());
    for (uint32_t r = 0; collet_executable_donates(executable_, i) && r < known.result_count; ++r) {
      if (taken[r] || !same(type, collet_executable_result(executable_, r))) continue;
      successor_[i] = r;
      taken[r] = 1;
      break;
    }
  }
  for (uint32_t r = 0; r < known.result_count; ++r) {
    const collet_array_type type = collet_executable_result(executable_, r);
    result_bytes_ += elements_of(type) * collet_type_bytes(type.element);
  }
  return ok_status();
}

BenchProgram::~BenchProgram() {
  release(arguments_);
  release(results_);
  collet_executable_release(executable_);
}

Expected<double> BenchProgram::run(uint64_t times) {
  collet_execute_options options{};
  options.struct_size = sizeof options;
  const auto start = std::chrono::steady_clock::now();
  collet_error error{};
  for (uint64_t i = 0; i < times; ++i) {
    release(results_);
    if (const auto code = collet_execute(executable_, &options, arguments_.data(), results_.data(), &error)) {
      return from_c(code, error, "execute");
    }
    for (size_t a = 0; a < arguments_.size(); ++a) {
      if (successor_[a] == COLLET_NONE) continue;
      collet_buffer_release(arguments_[a]);
      arguments_[a] = results_[successor_[a]];
      collet_buffer_retain(arguments_[a]);
    }
  }
  for (collet_buffer* result : results_) {
    collet_event* ready = collet_buffer_ready(result);
    const collet_status code = collet_event_wait(ready, &error);
    collet_event_release(ready);
    if (code) return from_c(code, error, "execute");
  }
  const double all = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  return all / static_cast<double>(times);
}

Expected<std::vector<hlo::Literal>> BenchProgram::results() const {
  std::vector<hlo::Literal> all;
  for (collet_buffer* result : results_) {
    COLLET_ASSIGN(hlo::Literal value, conformance::fetch(result));
    all.push_back(std::move(value));
  }
  return all;
}

collet_executable_facts BenchProgram::facts() const {
  collet_executable_facts facts{};
  facts.struct_size = sizeof facts;
  collet_error error{};
  if (collet_executable_facts_get(executable_, &facts, &error) != COLLET_OK) return {};
  return facts;
}

}  // namespace collet::bench
