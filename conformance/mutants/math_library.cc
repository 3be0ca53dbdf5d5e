// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/math_library.h"

#include <collet/types.h>
#include <dlfcn.h>

#include <bit>
#include <string>

namespace collet::mutants {
namespace {

void* library = RTLD_DEFAULT;

struct Function {
  const char* name = nullptr;
  bool binary = false;
};

Function function_of(uint32_t op) {
  switch (op) {
    case COLLET_OP_ACOS:
      return {"acos"};
    case COLLET_OP_ACOSH:
      return {"acosh"};
    case COLLET_OP_ASIN:
      return {"asin"};
    case COLLET_OP_ASINH:
      return {"asinh"};
    case COLLET_OP_ATANH:
      return {"atanh"};
    case COLLET_OP_CBRT:
      return {"cbrt"};
    case COLLET_OP_CEIL:
      return {"ceil"};
    case COLLET_OP_COSH:
      return {"cosh"};
    case COLLET_OP_COSINE:
      return {"cos"};
    case COLLET_OP_ERF:
      return {"erf"};
    case COLLET_OP_EXPONENTIAL:
      return {"exp"};
    case COLLET_OP_EXPONENTIAL_MINUS_ONE:
      return {"expm1"};
    case COLLET_OP_FLOOR:
      return {"floor"};
    case COLLET_OP_LOG:
      return {"log"};
    case COLLET_OP_LOG_PLUS_ONE:
      return {"log1p"};
    case COLLET_OP_ROUND_NEAREST_AFZ:
      return {"round"};
    case COLLET_OP_ROUND_NEAREST_EVEN:
      return {"nearbyint"};
    case COLLET_OP_SINE:
      return {"sin"};
    case COLLET_OP_SINH:
      return {"sinh"};
    case COLLET_OP_SQRT:
      return {"sqrt"};
    case COLLET_OP_TAN:
      return {"tan"};
    case COLLET_OP_TANH:
      return {"tanh"};
    case COLLET_OP_ATAN2:
      return {"atan2", true};
    case COLLET_OP_POWER:
      return {"pow", true};
    case COLLET_OP_REMAINDER:
      return {"fmod", true};
    default:
      return {};
  }
}

// Calls a function of the library that takes and returns numbers of type T.
template <typename T>
std::optional<double> call(const Function& function, const std::string& name, double x, double y) {
  void* address = dlsym(library, name.c_str());
  if (!address) return std::nullopt;
  const auto a = static_cast<T>(x), b = static_cast<T>(y);
  if (function.binary) return std::bit_cast<T (*)(T, T)>(address)(a, b);
  return std::bit_cast<T (*)(T)>(address)(a);
}

}  // namespace

bool use_math_library(const char* path) {
  if (!path || !*path) return true;
  void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened) library = opened;
  return opened != nullptr;
}

std::optional<double> by_math_library(uint32_t op, bool wide, double x, double y) {
  const Function function = function_of(op);
  if (!function.name) return std::nullopt;
  const std::string name = function.name;
  return wide ? call<double>(function, name, x, y) : call<float>(function, name + "f", x, y);
}

}  // namespace collet::mutants
