/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces with a TUN device, made without iproute2. The server has
 * one address, SERVER_ADDRESS, for all clients.
 */
#ifndef STANDIN_LINK_SPACE_H
#define STANDIN_LINK_SPACE_H

#define SERVER_ADDRESS "10.99.0.1"
/* Bytes before each packet: struct virtio_net_hdr. The sender leaves the
   checksum out, as with a network card. */
#define TUN_HEADER 10

struct space_options {
	int mtu;
	const char *congestion; /* algorithm of TCP, or NULL for the system's */
};

/* Lets an ordinary user make namespaces, if the system allows it. Both return 0
   or a negative errno, after a message on stderr. */
int space_permit(void);
/* Moves this process into a new namespace, whose descriptor is returned. */
int space_enter(const struct space_options *options);
/* In the namespace of this process: a device for client `k`, at the server's
   end or at the client's. Returns its descriptor, which does not block. */
int space_tun(const struct space_options *options, int k, int is_server);
/* In the server's namespace. */
int space_add_server(void);

#endif
