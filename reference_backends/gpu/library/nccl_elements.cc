// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/nccl_elements.h"

#include <collet/program.h>
#include <collet/types.h>

namespace collet::gpu {
namespace {

/// Returns the type as which NCCL combines elements of `type`.
std::optional<NcclElements> elements_of(uint32_t type) {
  switch (type) {
    case COLLET_TYPE_PRED:
    case COLLET_TYPE_U8:
      return NcclElements{ncclUint8, 1};
    case COLLET_TYPE_S8:
      return NcclElements{ncclInt8, 1};
    case COLLET_TYPE_S32:
      return NcclElements{ncclInt32, 1};
    case COLLET_TYPE_U32:
      return NcclElements{ncclUint32, 1};
    case COLLET_TYPE_S64:
      return NcclElements{ncclInt64, 1};
    case COLLET_TYPE_U64:
      return NcclElements{ncclUint64, 1};
    case COLLET_TYPE_F16:
      return NcclElements{ncclFloat16, 1};
    case COLLET_TYPE_BF16:
      return NcclElements{ncclBfloat16, 1};
    case COLLET_TYPE_F32:
      return NcclElements{ncclFloat32, 1};
    case COLLET_TYPE_F64:
      return NcclElements{ncclFloat64, 1};
    case COLLET_TYPE_C64:
      return NcclElements{ncclFloat32, 2};
    case COLLET_TYPE_C128:
      return NcclElements{ncclFloat64, 2};
    default:
      return std::nullopt;
  }
}

std::optional<ncclRedOp_t> operation_of(uint32_t kind, uint32_t combine) {
  const bool is_pred = kind == COLLET_KIND_PRED, is_float = kind == COLLET_KIND_FLOAT;
  const bool is_integer = kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;
  switch (combine) {
    case COLLET_COMBINE_ADD:
      return is_pred ? std::nullopt : std::optional(ncclSum);
    case COLLET_COMBINE_MULTIPLY:
      return is_float || is_integer ? std::optional(ncclProd) : std::nullopt;
    case COLLET_COMBINE_MINIMUM:
      return is_pred || is_integer ? std::optional(ncclMin) : std::nullopt;
    case COLLET_COMBINE_MAXIMUM:
      return is_pred || is_integer ? std::optional(ncclMax) : std::nullopt;
    case COLLET_COMBINE_AND:
      return is_pred ? std::optional(ncclMin) : std::nullopt;
    case COLLET_COMBINE_OR:
      return is_pred ? std::optional(ncclMax) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

NcclElements moved_by_nccl(uint32_t type) {
  return {ncclInt8, static_cast<int64_t>(collet_type_bytes(type))};
}

std::optional<NcclCombination> combined_by_nccl(uint32_t type, uint32_t combine) {
  const std::optional<NcclElements> elements = elements_of(type);
  const std::optional<ncclRedOp_t> operation = operation_of(collet_type_kind(type), combine);
  if (!elements || !operation) return std::nullopt;
  return NcclCombination{*elements, *operation};
}

std::string nccl_text(const Libraries& nccl, ncclResult_t result, const char* what) {
  std::string out = std::string(what) + ": " + nccl.ncclGetErrorString(result);
  const char* const last = nccl.ncclGetLastError ? nccl.ncclGetLastError(nullptr) : nullptr;
  if (last && *last) out += std::string(" (") + last + ")";
  return out;
}

}  // namespace collet::gpu
