module example.com/shipments

go 1.22
