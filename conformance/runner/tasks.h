// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"
#include "conformance/runner/workers.h"

/// \file
/// What the process that runs a suite asks of its workers: names of tasks, and the options of a pool of workers.

namespace collet::conformance {

/// Names of tasks; others are names of cases. Where a name ends with a space, fields or a name follow.
constexpr std::string_view kDeclared = "?declared";  ///< the cases of the patterns that the backend declares
constexpr std::string_view kReduce = "?reduce ";     ///< reduce the failing program of a case
constexpr std::string_view kOffer = "?offer ";       ///< the cases of a program: fields `path` and `name`
constexpr std::string_view kBatch = "?batch ";       ///< run cases as one program: fields with their names
constexpr std::string_view kTry = "?try ";           ///< run a case with another program: fields `name` and `text`

/// Seconds in which a worker looks for a smaller program.
constexpr double kSecondsToReduce = 2;

/// True for contract cases, which use the plugin's table directly; other cases run a program through the runtime.
bool is_contract(std::string_view name);
/// True for the cases of whole programs.
bool is_whole(std::string_view name);

/// Returns the arguments of a worker that runs the cases of `options` on `backend`.
std::vector<std::string> arguments_of(const ConformOptions& options, const BackendChoice& backend);
/// Returns the seconds that a case may take longer than its limit: a worker that is a group of processes sees itself which of
/// them gives no answer, and says so a little later.
double margin(const ConformOptions& options);
/// Returns the options of the worker pool. `options` must outlive the result.
PoolOptions pool_of(const ConformOptions& options);
/// Opens the backend in a worker, so that even a crash there is only reported, and fills what the report says of it.
Status probe(const std::string& name, PoolOptions& pool, ConformReport& report);
/// True if the runtime refuses the backend because of what the backend reports about itself: it opens, but its
/// description is invalid. A missing device or a wrong option is not the backend's fault.
bool describes_itself_wrongly(const PoolOptions& pool);

}  // namespace collet::conformance
