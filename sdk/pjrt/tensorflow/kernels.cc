// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/tensorflow/kernels.h"

#include <cstddef>
#include <initializer_list>
#include <new>

#include "sdk/pjrt/tensorflow/host.h"

struct TF_KernelBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;

namespace collet::tensorflow {
namespace {

/// An operation on variables, and its arguments that must be constants when it is compiled.
struct Op {
  const char* name;
  std::initializer_list<const char*> constants;
};

const Op kOps[] = {
    {"AssignAddVariableOp", {}},
    {"AssignSubVariableOp", {}},
    {"ResourceApplyAdaMax", {}},
    {"ResourceApplyAdadelta", {}},
    {"ResourceApplyAdagrad", {}},
    {"ResourceApplyAdagradDA", {}},
    {"ResourceApplyAdagradV2", {}},
    {"ResourceApplyAdam", {}},
    {"ResourceApplyAddSign", {}},
    {"ResourceApplyCenteredRMSProp", {}},
    {"ResourceApplyFtrl", {}},
    {"ResourceApplyFtrlV2", {}},
    {"ResourceApplyGradientDescent", {}},
    {"ResourceApplyKerasMomentum", {}},
    {"ResourceApplyMomentum", {}},
    {"ResourceApplyPowerSign", {}},
    {"ResourceApplyProximalAdagrad", {}},
    {"ResourceApplyProximalGradientDescent", {}},
    {"ResourceApplyRMSProp", {}},
    {"ResourceGather", {}},
    {"ResourceGatherNd", {}},
    {"ResourceScatterAdd", {}},
    {"ResourceScatterDiv", {}},
    {"ResourceScatterMax", {}},
    {"ResourceScatterMin", {}},
    {"ResourceScatterMul", {}},
    {"ResourceScatterNdAdd", {}},
    {"ResourceScatterNdSub", {}},
    {"ResourceScatterNdUpdate", {}},
    {"ResourceScatterSub", {}},
    {"ResourceScatterUpdate", {}},
    {"ResourceStridedSliceAssign", {"begin", "end", "strides"}},
};

/// Functions of the class tensorflow::XlaCompileOnDemandOp. TensorFlow's C interface passes its own OpKernelConstruction and
/// OpKernelContext under other names.
struct OnDemand {
  void (*construct)(void* self, TF_OpKernelConstruction*) = nullptr;
  void (*destroy)(void* self) = nullptr;
  void (*compute)(void* self, TF_OpKernelContext*) = nullptr;
};
OnDemand on_demand;

constexpr size_t kObjectBytes = 8192;  // several times the size of the class in TensorFlow 2.21
constexpr std::align_val_t kAlignment{64};

void* create(TF_OpKernelConstruction* context) {
  void* const self = ::operator new(kObjectBytes, kAlignment);
  on_demand.construct(self, context);
  return self;
}

void compute(void* self, TF_OpKernelContext* context) {
  on_demand.compute(self, context);
}

void destroy(void* self) {
  if (!self) return;
  on_demand.destroy(self);
  ::operator delete(self, kAlignment);
}

using NewBuilder = TF_KernelBuilder*(const char* op, const char* device, void* (*create)(TF_OpKernelConstruction*),
                                     void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*));

}  // namespace

bool register_kernels(const std::string& device_type) {
  on_demand.construct = c_function<void(void*, TF_OpKernelConstruction*)>(
      "_ZN10tensorflow20XlaCompileOnDemandOpC1EPNS_20OpKernelConstructionE");
  on_demand.destroy = c_function<void(void*)>("_ZN10tensorflow20XlaCompileOnDemandOpD2Ev");
  on_demand.compute = c_function<void(void*, TF_OpKernelContext*)>(
      "_ZN10tensorflow20XlaCompileOnDemandOp7ComputeEPNS_15OpKernelContextE");
  const auto make = c_function<NewBuilder>("TF_NewKernelBuilder");
  const auto host_memory = c_function<void(TF_KernelBuilder*, const char*)>("TF_KernelBuilder_HostMemory");
  const auto add = c_function<void(const char*, TF_KernelBuilder*, TF_Status*)>("TF_RegisterKernelBuilder");
  const auto new_status = c_function<TF_Status*()>("TF_NewStatus");
  const auto delete_status = c_function<void(TF_Status*)>("TF_DeleteStatus");
  if (!on_demand.construct || !on_demand.destroy || !on_demand.compute || !make || !host_memory || !add ||
      !new_status || !delete_status)
    return false;
  TF_Status* const status = new_status();
  for (const Op& op : kOps) {
    TF_KernelBuilder* const builder = make(op.name, device_type.c_str(), create, compute, destroy);
    for (const char* const name : op.constants) host_memory(builder, name);
    add((device_type + op.name).c_str(), builder, status);
  }
  delete_status(status);
  return true;
}

}  // namespace collet::tensorflow
