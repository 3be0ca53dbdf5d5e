// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/interpreter/executable.h"

#include <cstring>
#include <string>

#include "hlo/program/leaves.h"
#include "hlo/program/read.h"

namespace collet::interpreter {
namespace {

uint8_t* address(const collet_argument& a) {
  return reinterpret_cast<uint8_t*>(reinterpret_cast<Buffer*>(a.buffer)->data + a.offset);
}

bool has_bytes(const collet_argument& a, uint64_t bytes) {
  return a.buffer && a.bytes == bytes && reinterpret_cast<Buffer*>(a.buffer)->has_range(a.offset, bytes);
}

}  // namespace

Expected<std::unique_ptr<Executable>> Executable::make(const collet_program* program, hlo::EvalOptions options,
                                                       uint32_t devices) {
  COLLET_ASSIGN(hlo::ReadProgram read, hlo::read_program(program, program->total_bytes));
  std::unique_ptr<Executable> out(new Executable);
  out->program_ = hlo::Block(program, program->total_bytes);
  out->module_ = std::move(read.module);
  out->devices_ = devices;
  const hlo::Module& m = *out->module_;
  for (hlo::InstrId p : m.entry_computation().parameters) out->arguments_.push_back(m[p].shape);
  hlo::append_leaf_shapes(m[m.entry_computation().root].shape, out->results_);
  options.replicas = program->replica_count;
  options.partitions = program->partition_count;
  out->participants_ = program->replica_count * program->partition_count;
  out->evaluator_ = std::make_unique<hlo::Evaluator>(m, std::move(options));
  return out;
}

Expected<std::vector<hlo::Literal>> Executable::arguments(const collet_launch& launch) const {
  if (launch.argument_count != arguments_.size() || launch.result_count != results_.size())
    return invalid_argument("a launch with " + std::to_string(launch.argument_count) + " arguments and " +
                            std::to_string(launch.result_count) + " results; the program has " +
                            std::to_string(arguments_.size()) + " and " + std::to_string(results_.size()));
  std::vector<hlo::Literal> out;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const collet_argument& a = launch.arguments[i];
    const auto bytes = static_cast<uint64_t>(arguments_[i].byte_size());
    if (bytes == 0) {
      out.push_back(hlo::Literal::zeros(arguments_[i]));
    } else if (a.flags & COLLET_ARG_IMMEDIATE && bytes <= sizeof a.immediate) {
      out.push_back(hlo::Literal::from_bytes(arguments_[i], a.immediate));
    } else {
      if (!has_bytes(a, bytes))
        return invalid_argument("argument " + std::to_string(i) + " is not inside its buffer with the " +
                                std::to_string(bytes) + " bytes of its type");
      out.push_back(hlo::Literal::borrow(arguments_[i], address(a)));
    }
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    const auto bytes = static_cast<uint64_t>(results_[i].byte_size());
    if (bytes != 0 && !has_bytes(launch.results[i], bytes))
      return invalid_argument("result " + std::to_string(i) + " is not inside its buffer with the " +
                              std::to_string(bytes) + " bytes of its type");
  }
  return out;
}

Status Executable::store(const hlo::Literal& result, const collet_launch& launch) const {
  std::vector<hlo::Literal> leaves = hlo::flatten(result);
  if (leaves.size() != results_.size()) return internal_error("the evaluator gave another number of results");
  // A result that is an unchanged argument is a view of the argument's memory, which another result may overwrite, so
  // it is copied first.
  for (hlo::Literal& leaf : leaves)
    for (uint32_t i = 0; i < launch.argument_count && leaf.byte_size() > 0; ++i)
      if (launch.arguments[i].buffer && leaf.bytes() == address(launch.arguments[i])) {
        leaf = hlo::Literal::from_bytes(leaf.shape(), leaf.bytes());
        break;
      }
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto bytes = static_cast<uint64_t>(results_[i].byte_size());
    if (bytes == 0) continue;
    const collet_argument& r = launch.results[i];
    if (static_cast<uint64_t>(leaves[i].byte_size()) != bytes)
      return internal_error("result " + std::to_string(i) + " has not the size that was announced");
    std::memmove(address(r), leaves[i].bytes(), bytes);
  }
  return ok_status();
}

Status Executable::run(std::span<const collet_launch> launches) const {
  if (launches.size() != participants_)
    return invalid_argument(std::to_string(launches.size()) + " launches for " + std::to_string(participants_) +
                            " participants");
  for (const collet_launch& launch : launches)
    if (launch.device >= devices_) return not_found("there is no device " + std::to_string(launch.device));
  if (participants_ == 1) {
    COLLET_ASSIGN(std::vector<hlo::Literal> in, arguments(launches[0]));
    COLLET_ASSIGN(const hlo::Literal result, evaluator_->run(std::move(in)));
    return store(result, launches[0]);
  }
  std::vector<std::vector<hlo::Literal>> in(launches.size());
  for (const collet_launch& launch : launches) {
    if (launch.participant >= in.size()) return invalid_argument("no such participant");
    COLLET_ASSIGN(in[launch.participant], arguments(launch));
  }
  COLLET_ASSIGN(const std::vector<hlo::Literal> results, evaluator_->run_all(std::move(in)));
  for (const collet_launch& launch : launches) COLLET_TRY(store(results[launch.participant], launch));
  return ok_status();
}

}  // namespace collet::interpreter
