#include "doors/ibverbs/operations.hpp"

#include "doors/ibverbs/absent.hpp"

namespace fairlead::ibverbs {

void set_operations(verbs_context& context) {
  ibv_context_ops& ops = context.context.ops;
  ops.poll_cq = poll_queue;
  ops.req_notify_cq = request_notify;
  ops.post_send = post_send;
  ops.post_recv = post_receive;
  ops.post_srq_recv = post_shared_receive;
  ops.alloc_mw = add_window;
  ops.bind_mw = bind_window;
  ops.dealloc_mw = remove_window;

  context.sz = sizeof context;
  context.query_port = query_port;
  context.query_device_ex = query_device_extended;
  context.query_rt_values = query_values;
  context.create_cq_ex = create_queue;
  context.modify_cq = modify_queue;
  context.create_srq_ex = create_shared_receive;
  context.get_srq_num = shared_receive_number;
  context.create_qp_ex = create_pair;
  context.open_xrcd = open_xrc_domain;
  context.close_xrcd = close_xrc_domain;
  context.open_qp = open_target;
  context.alloc_null_mr = add_null_region;
  context.advise_mr = advise_region;
  context.alloc_td = add_thread_domain;
  context.dealloc_td = remove_thread_domain;
  context.alloc_parent_domain = add_parent_domain;
  context.alloc_dm = add_device_memory;
  context.free_dm = remove_device_memory;
  context.reg_dm_mr = add_device_region;
  set_absent_operations(context);
}

}  // namespace fairlead::ibverbs
