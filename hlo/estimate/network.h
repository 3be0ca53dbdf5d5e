// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hlo/estimate/machine.h"
#include "hlo/ir/ops.h"

/// \file
/// The time of a collective on a network of several levels, by the usual model of latency and bandwidth.

namespace collet::hlo::estimate {

/// What a collective moves. `bytes`: of an all-gather those of the result, of others those of the operand, for each
/// participant.
struct Transfer {
  Op op = Op::ALL_REDUCE;
  double bytes = 0;
};

/// How many devices of a group are apart in each level of the network.
using Span = std::vector<int64_t>;

/// Returns the span of a group of device numbers. A group that is no product of its coordinates counts as one that has
/// all of them.
Span span_of(const Machine& machine, std::span<const int64_t> group);

/// The time of one collective.
struct CollectiveTime {
  double ns = 0;
  double latency_ns = 0;  ///< part of `ns`
  size_t level = 0;       ///< the level that takes most of it
};

/// Returns the time of a collective in groups of this span, which all run at the same time.
///
/// An all-gather works from the outermost level inwards, a reduce-scatter from the innermost outwards, an all-reduce is a
/// reduce-scatter and an all-gather (R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
/// operations in MPICH, 2005): a level of n devices moves (n - 1) / n of what is there before or after it, in ceil(log2 n)
/// messages through a switch, and in n - 1 around a ring, both directions of which are used. A torus does that in all of
/// its dimensions at once. An all-to-all moves what crosses each level, on a ring n / 8 of the data over each link.
CollectiveTime collective_time(const Machine& machine, const Span& span, const Transfer& transfer);

}  // namespace collet::hlo::estimate
