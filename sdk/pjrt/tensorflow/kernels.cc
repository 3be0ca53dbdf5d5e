// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/tensorflow/kernels.h"

#include <cstddef>
#include <initializer_list>
#include <new>

#include "sdk/pjrt/tensorflow/host.h"
#include "sdk/pjrt/tensorflow/kernel_builder.h"
#include "sdk/pjrt/tensorflow/list_kernels.h"

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

/// Loops whose functions TensorFlow would run on the device, operation by operation. It has kernels of few operations there, and
/// takes a condition in host memory for one in device memory, so that the process ends. Loops of tf.while_loop are none of
/// these: TensorFlow makes a graph of them before.
const char* const kRefused[] = {"StatelessWhile", "While"};

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

void* refuse(TF_OpKernelConstruction* context) {
  const auto failure = c_function<void(TF_OpKernelConstruction*, TF_Status*)>("TF_OpKernelConstruction_Failure");
  const auto new_status = c_function<TF_Status*()>("TF_NewStatus");
  const auto delete_status = c_function<void(TF_Status*)>("TF_DeleteStatus");
  TF_Status* const status = new_status();
  set_status(status, TF_UNIMPLEMENTED,
             "collet: a functional loop (operation While) runs on this device only in compiled functions: give the "
             "tf.function jit_compile=True, or place the loop on the CPU by tf.device('/CPU:0')");
  failure(context, status);
  delete_status(status);
  return nullptr;
}

void compute_nothing(void*, TF_OpKernelContext*) {}

void destroy_nothing(void*) {}

void compute(void* self, TF_OpKernelContext* context) {
  on_demand.compute(self, context);
}

void destroy(void* self) {
  if (!self) return;
  on_demand.destroy(self);
  ::operator delete(self, kAlignment);
}

}  // namespace

bool register_kernels(const std::string& device_type) {
  on_demand.construct = c_function<void(void*, TF_OpKernelConstruction*)>(
      "_ZN10tensorflow20XlaCompileOnDemandOpC1EPNS_20OpKernelConstructionE");
  on_demand.destroy = c_function<void(void*)>("_ZN10tensorflow20XlaCompileOnDemandOpD2Ev");
  on_demand.compute = c_function<void(void*, TF_OpKernelContext*)>(
      "_ZN10tensorflow20XlaCompileOnDemandOp7ComputeEPNS_15OpKernelContextE");
  KernelBuilder builder;
  if (!on_demand.construct || !on_demand.destroy || !on_demand.compute || !builder.find()) return false;
  for (const Op& op : kOps) builder.add({op.name, device_type, op.constants, nullptr, 0, create, compute, destroy});
  if (!c_function<void(TF_OpKernelConstruction*, TF_Status*)>("TF_OpKernelConstruction_Failure")) return false;
  for (const char* const op : kRefused)
    builder.add({op, device_type, {}, nullptr, 0, refuse, compute_nothing, destroy_nothing});
  return register_list_kernels(device_type);
}

}  // namespace collet::tensorflow
