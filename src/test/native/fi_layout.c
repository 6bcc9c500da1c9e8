/* Prints the offsets and constants that FiLayout.java relies on, as NAME=value, from the installed headers. */
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stddef.h>
#include <stdio.h>

#define AT(name, type, field) printf(#name "=%lld\n", (long long)offsetof(struct type, field))
#define IS(name, value) printf(#name "=%lld\n", (long long)(value))

int main(void)
{
    AT(INFO_NEXT, fi_info, next);
    AT(INFO_CAPS, fi_info, caps);
    AT(INFO_MODE, fi_info, mode);
    AT(INFO_ADDR_FORMAT, fi_info, addr_format);
    AT(INFO_SRC_ADDR, fi_info, src_addr);
    AT(INFO_TX_ATTR, fi_info, tx_attr);
    AT(INFO_RX_ATTR, fi_info, rx_attr);
    AT(INFO_EP_ATTR, fi_info, ep_attr);
    AT(INFO_DOMAIN_ATTR, fi_info, domain_attr);
    AT(INFO_FABRIC_ATTR, fi_info, fabric_attr);
    AT(TX_ATTR_INJECT_SIZE, fi_tx_attr, inject_size);
    AT(TX_ATTR_SIZE, fi_tx_attr, size);
    AT(RX_ATTR_SIZE, fi_rx_attr, size);
    AT(EP_ATTR_TYPE, fi_ep_attr, type);
    AT(EP_ATTR_MAX_MSG_SIZE, fi_ep_attr, max_msg_size);
    AT(DOMAIN_ATTR_NAME, fi_domain_attr, name);
    AT(DOMAIN_ATTR_THREADING, fi_domain_attr, threading);
    AT(DOMAIN_ATTR_CONTROL_PROGRESS, fi_domain_attr, control_progress);
    AT(DOMAIN_ATTR_DATA_PROGRESS, fi_domain_attr, data_progress);
    AT(DOMAIN_ATTR_MR_MODE, fi_domain_attr, mr_mode);
    AT(FABRIC_ATTR_PROV_NAME, fi_fabric_attr, prov_name);
    AT(FID_OPS, fid, ops);
    AT(FI_OPS_CLOSE, fi_ops, close);
    AT(FI_OPS_BIND, fi_ops, bind);
    AT(FI_OPS_CONTROL, fi_ops, control);
    AT(OBJECT_OPS, fid_fabric, ops);
    AT(OBJECT_OPS, fid_domain, ops);
    AT(OBJECT_OPS, fid_av, ops);
    AT(OBJECT_OPS, fid_cq, ops);
    AT(OBJECT_OPS, fid_ep, ops);
    AT(DOMAIN_MR_OPS, fid_domain, mr);
    AT(EP_CM_OPS, fid_ep, cm);
    AT(EP_TAGGED_OPS, fid_ep, tagged);
    AT(MR_MEM_DESC, fid_mr, mem_desc);
    AT(FABRIC_OPS_DOMAIN, fi_ops_fabric, domain);
    AT(DOMAIN_OPS_AV_OPEN, fi_ops_domain, av_open);
    AT(DOMAIN_OPS_CQ_OPEN, fi_ops_domain, cq_open);
    AT(DOMAIN_OPS_ENDPOINT, fi_ops_domain, endpoint);
    AT(MR_OPS_REG, fi_ops_mr, reg);
    AT(AV_OPS_INSERT, fi_ops_av, insert);
    AT(AV_OPS_REMOVE, fi_ops_av, remove);
    AT(CM_OPS_SETNAME, fi_ops_cm, setname);
    AT(CM_OPS_GETNAME, fi_ops_cm, getname);
    AT(EP_OPS_CANCEL, fi_ops_ep, cancel);
    AT(CQ_OPS_READ, fi_ops_cq, read);
    AT(CQ_OPS_READERR, fi_ops_cq, readerr);
    AT(CQ_OPS_STRERROR, fi_ops_cq, strerror);
    AT(TAGGED_OPS_RECV, fi_ops_tagged, recv);
    AT(TAGGED_OPS_SEND, fi_ops_tagged, send);
    AT(TAGGED_OPS_INJECT, fi_ops_tagged, inject);
    AT(AV_ATTR_TYPE, fi_av_attr, type);
    AT(AV_ATTR_COUNT, fi_av_attr, count);
    AT(CQ_ATTR_SIZE, fi_cq_attr, size);
    AT(CQ_ATTR_FORMAT, fi_cq_attr, format);
    AT(CQ_ATTR_WAIT_OBJ, fi_cq_attr, wait_obj);
    AT(CQ_ENTRY_CONTEXT, fi_cq_tagged_entry, op_context);
    AT(CQ_ENTRY_LEN, fi_cq_tagged_entry, len);
    AT(CQ_ENTRY_TAG, fi_cq_tagged_entry, tag);
    IS(CQ_ENTRY_BYTES, sizeof(struct fi_cq_tagged_entry));
    AT(CQ_ERR_CONTEXT, fi_cq_err_entry, op_context);
    AT(CQ_ERR_ERR, fi_cq_err_entry, err);
    AT(CQ_ERR_PROV_ERRNO, fi_cq_err_entry, prov_errno);
    AT(CQ_ERR_DATA, fi_cq_err_entry, err_data);
    IS(CONTEXT_BYTES, sizeof(struct fi_context2));
    IS(EP_RDM, FI_EP_RDM);
    IS(CAP_TAGGED, FI_TAGGED);
    IS(FLAG_RECV, FI_RECV);
    IS(FLAG_SEND, FI_SEND);
    IS(MODE_CONTEXT, FI_CONTEXT);
    IS(MODE_CONTEXT2, FI_CONTEXT2);
    IS(MR_LOCAL, FI_MR_LOCAL);
    IS(MR_VIRT_ADDR, FI_MR_VIRT_ADDR);
    IS(MR_ALLOCATED, FI_MR_ALLOCATED);
    IS(MR_PROV_KEY, FI_MR_PROV_KEY);
    IS(FORMAT_SOCKADDR_IN, FI_SOCKADDR_IN);
    IS(FORMAT_SOCKADDR_IN6, FI_SOCKADDR_IN6);
    IS(PROGRESS_MANUAL, FI_PROGRESS_MANUAL);
    IS(THREAD_DOMAIN, FI_THREAD_DOMAIN);
    IS(AV_TABLE, FI_AV_TABLE);
    IS(CQ_FORMAT_TAGGED, FI_CQ_FORMAT_TAGGED);
    IS(WAIT_NONE, FI_WAIT_NONE);
    IS(ENABLE, FI_ENABLE);
    IS(ADDR_UNSPEC, FI_ADDR_UNSPEC);
    IS(EAGAIN, FI_EAGAIN);
    IS(ENOMEM, FI_ENOMEM);
    IS(ECANCELED, FI_ECANCELED);
    IS(EMFILE, EMFILE);
    IS(ENFILE, ENFILE);
    IS(ENODATA, FI_ENODATA);
    IS(EAVAIL, FI_EAVAIL);
    return 0;
}
